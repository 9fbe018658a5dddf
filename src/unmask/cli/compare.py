"""`compare`: members, a corpus, a suite and a budget in; one table out.

What arrives: members, a prepared folder, a folder of tasks, a budget for each pre-training. What leaves: a network for
each member and seed, one tuned network for each task, and a table with spread and curves.
What never happens here: the work; see `unmask/cli/comparing.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_PRETRAIN, _TUNE, _RUNS = "How each is pre-trained", "How each is tuned", "How it runs"


def compare(
    members: Annotated[list[str], typer.Argument(help="Members, or your_file.py:name, to be compared.")],
    data: Annotated[Path, typer.Option(help="A prepared folder; all members read it, with its tokenizer.")],
    suite: Annotated[Path, typer.Option(help="A folder of NAME.train.* and NAME.dev.* files, perhaps a suite.toml.")],
    out: Annotated[Path, typer.Option(help="The folder to make; the same command goes on in it.")],
    steps: Annotated[int | None, typer.Option(min=1, help="Each network is trained for this many steps,")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="or this many tokens,")] = None,
    hours: Annotated[float | None, typer.Option(min=0, help="or this many hours on this machine,")] = None,
    flops: Annotated[float | None, typer.Option(min=0, help="or about this many FLOPs, e.g. 1e15.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How often everything is done.")] = 3,
    tasks: Annotated[str, typer.Option(help="Only these tasks, with commas.")] = "",
    points: Annotated[
        int, typer.Option(min=1, help="Also tune what was learned at K even shares of the budget; 1: the end alone.")
    ] = 1,
    scratch: Annotated[
        Literal["first", "each", "none"], typer.Option(help="Whose shape is also tuned from newly drawn weights.")
    ] = "first",
    size: Annotated[
        str, typer.Option(help="tiny, mini, small, medium, base or large.", rich_help_panel=_PRETRAIN)
    ] = "small",
    short: Annotated[
        bool, typer.Option("--short", help="For minutes: see unmask pretrain --help.", rich_help_panel=_PRETRAIN)
    ] = False,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Rows in a step, in every stage.", rich_help_panel=_PRETRAIN)
    ] = None,
    rate: Annotated[float | None, typer.Option(help="The highest learning rate.", rich_help_panel=_PRETRAIN)] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Change recipes: PATH=VALUE, or MEMBER:PATH=VALUE for one.", rich_help_panel=_PRETRAIN
        ),
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0, max=0.5, help="The share of the text to judge by.", rich_help_panel=_PRETRAIN)
    ] = 0.01,
    policy: Annotated[str, typer.Option(help="What may move: see unmask tune --help.", rich_help_panel=_TUNE)] = "full",
    epochs: Annotated[
        float | None, typer.Option(help="How often every row is learned from. Usual: 3.", rich_help_panel=_TUNE)
    ] = None,
    tune_rate: Annotated[
        float | None, typer.Option(help="The highest learning rate of tuning.", rich_help_panel=_TUNE)
    ] = None,
    tune_batch: Annotated[
        int | None, typer.Option(min=1, help="Questions in a step. Usual: 32.", rich_help_panel=_TUNE)
    ] = None,
    length: Annotated[
        int | None, typer.Option(min=4, help="Most tokens in a row. Usual: 128.", rich_help_panel=_TUNE)
    ] = None,
    at_once: Annotated[
        int, typer.Option(min=0, help="Tunes that share the machine; 0: one for each core.", rich_help_panel=_RUNS)
    ] = 0,
    pretrain_at_once: Annotated[
        int, typer.Option(min=1, help="Pre-trainings that share the machine.", rich_help_panel=_RUNS)
    ] = 1,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.", rich_help_panel=_RUNS)
    ] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="Numbers to compute in.", rich_help_panel=_RUNS)
    ] = "auto",
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile networks before pre-training.", rich_help_panel=_RUNS)
    ] = False,
    graphs: Annotated[
        Literal["auto", "on", "off"],
        typer.Option(help="Whole steps as CUDA graphs; auto: on such a GPU.", rich_help_panel=_RUNS),
    ] = "auto",
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Plain code: torch's kernels, every place computed.", rich_help_panel=_RUNS),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it would cost, and stop.", rich_help_panel=_RUNS)
    ] = False,
) -> None:
    """Pre-train members on one corpus with one budget, tune each on a suite, print one table. Starting again goes on.

    Examples:

        unmask compare bert roberta --size tiny --short --data data/ --suite tasks/ --steps 200 --seeds 2 --out lab/

        unmask compare bert wwm --data data/ --suite tasks/ --hours 0.2 --seeds 3 --out lab-hours/ --dry-run

        unmask compare bert wwm --data data/ --suite tasks/ --flops 1e16 --set 'bert:renew=EveryVisit()' --out lab2/
    """
    from unmask.evaluation.suite_file import read_suite
    from unmask.finetuning.methods.by_name import method_by_name

    method_by_name(policy, {})
    only = [name.strip() for name in tasks.split(",") if name.strip()]
    found = read_suite(suite, only)
    given = {"epochs": epochs, "rate": tune_rate, "batch": tune_batch, "length": length}
    tuning = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]

    from unmask.lab.compare.run import ComparisonRun
    from unmask.lab.compare.spec import ComparisonSpec

    contest = ComparisonSpec(
        members=tuple(members),
        changes=tuple(set_ or ()),
        data=data,
        tasks=found,
        budget={"steps": steps, "tokens": tokens, "hours": hours, "flops": flops},
        seeds=seeds,
        points=points,
        scratch=scratch,
        size=size,
        short=short,
        batch_size=batch,
        lr=rate,
        heldout_fraction=held_out,
        finetune_args=("--policy", policy, *tuning),
        device=device,
        precision=precision,
        compile=compile_,
        cuda_graphs=graphs,
        no_kernels=plain,
    )
    ComparisonRun(contest, out, at_once, pretrain_at_once).run(dry_run)

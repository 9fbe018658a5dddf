"""`compare`: members that are pre-trained with one budget on one corpus, and fine-tuned on one suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_PRETRAIN, _TUNE, _RUNS = "How each is pre-trained", "How each is fine-tuned", "How it runs"


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
        int,
        typer.Option(min=1, help="Also fine-tune checkpoints at K even fractions of the budget; 1: the last alone."),
    ] = 1,
    scratch: Annotated[
        Literal["first", "each", "none"], typer.Option(help="Whose shape is also fine-tuned from random weights.")
    ] = "first",
    size: Annotated[
        str, typer.Option(help="tiny, mini, small, medium, base or large.", rich_help_panel=_PRETRAIN)
    ] = "small",
    preset: Annotated[
        Literal["published", "short"],
        typer.Option(help="short: for runs of minutes, see unmask pretrain --help.", rich_help_panel=_PRETRAIN),
    ] = "published",
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Rows in a step, in every stage.", rich_help_panel=_PRETRAIN)
    ] = None,
    lr: Annotated[float | None, typer.Option(help="The peak learning rate.", rich_help_panel=_PRETRAIN)] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Change recipes: PATH=VALUE, or MEMBER:PATH=VALUE for one.", rich_help_panel=_PRETRAIN
        ),
    ] = None,
    heldout_fraction: Annotated[
        float, typer.Option(min=0, max=0.5, help="The fraction of the text to evaluate on.", rich_help_panel=_PRETRAIN)
    ] = 0.01,
    method: Annotated[
        str, typer.Option(help="Which parameters are trained: see unmask finetune --help.", rich_help_panel=_TUNE)
    ] = "full",
    epochs: Annotated[
        float | None, typer.Option(help="Passes over the training rows. Default: 3.", rich_help_panel=_TUNE)
    ] = None,
    finetune_lr: Annotated[
        float | None, typer.Option(help="The peak learning rate of fine-tuning.", rich_help_panel=_TUNE)
    ] = None,
    finetune_batch_size: Annotated[
        int | None, typer.Option(min=1, help="Rows in a step. Default: 32.", rich_help_panel=_TUNE)
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=4, help="Most tokens in a row. Default: 128.", rich_help_panel=_TUNE)
    ] = None,
    max_finetunes: Annotated[
        int, typer.Option(min=0, help="Fine-tunings at the same time; 0: one per core.", rich_help_panel=_RUNS)
    ] = 0,
    max_pretrainings: Annotated[
        int, typer.Option(min=1, help="Pre-trainings at the same time.", rich_help_panel=_RUNS)
    ] = 1,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.", rich_help_panel=_RUNS)
    ] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="The floating-point type.", rich_help_panel=_RUNS)
    ] = "auto",
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile networks before pre-training.", rich_help_panel=_RUNS)
    ] = False,
    cuda_graphs: Annotated[
        Literal["auto", "on", "off"],
        typer.Option(help="Record whole steps as CUDA graphs.", rich_help_panel=_RUNS),
    ] = "auto",
    no_kernels: Annotated[
        bool, typer.Option("--no-kernels", help="Without the Triton kernels.", rich_help_panel=_RUNS)
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the cost and stop.", rich_help_panel=_RUNS)
    ] = False,
) -> None:
    """Pre-train members with one budget on one corpus and fine-tune each on a suite. The same command resumes.

    Examples:

        unmask compare bert roberta --size tiny --preset short --data data/ --suite tasks/ --steps 200 --out lab/

        unmask compare bert wwm --data data/ --suite tasks/ --hours 0.2 --seeds 3 --out lab-hours/ --dry-run

        unmask compare bert wwm --data data/ --flops 1e16 --set 'bert:masking=DynamicMasking()' --out lab2
    """
    from unmask.evaluation.suite_file import read_suite
    from unmask.finetuning.methods.by_name import method_by_name

    method_by_name(method, {})
    names = [name.strip() for name in tasks.split(",") if name.strip()]
    found = read_suite(suite, names)
    given = {"epochs": epochs, "lr": finetune_lr, "batch-size": finetune_batch_size, "max-length": max_length}
    words = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]

    from unmask.cli.ui.compare_table import TerminalComparisonListener
    from unmask.cli.ui.console import explain_interrupt
    from unmask.lab.compare.run import ComparisonRun
    from unmask.lab.compare.spec import ComparisonSpec

    spec = ComparisonSpec(
        members=tuple(members),
        changes=tuple(set_ or ()),
        data=data,
        tasks=found,
        budget={"steps": steps, "tokens": tokens, "hours": hours, "flops": flops},
        seeds=seeds,
        points=points,
        scratch=scratch,
        size=size,
        preset=preset,
        batch_size=batch_size,
        lr=lr,
        heldout_fraction=heldout_fraction,
        finetune_args=("--method", method, *words),
        device=device,
        precision=precision,
        compile=compile_,
        cuda_graphs=cuda_graphs,
        no_kernels=no_kernels,
    )
    with explain_interrupt(out):
        ComparisonRun(spec, out, max_finetunes, max_pretrainings, TerminalComparisonListener()).run(dry_run)

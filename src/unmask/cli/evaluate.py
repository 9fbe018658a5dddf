"""`evaluate`: a model on a suite of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    source: Annotated[Path, typer.Argument(help="The network: a run of pretrain, or a Hugging Face folder.")],
    suite: Annotated[Path, typer.Option(help="A folder of NAME.train.* and NAME.dev.* files, perhaps a suite.toml.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for each task.")] = 3,
    tasks: Annotated[str, typer.Option(help="Only these tasks, with commas.")] = "",
    scratch: Annotated[
        bool, typer.Option("--scratch/--no-scratch", help="Also fine-tune random weights, as a baseline.")
    ] = True,
    method: Annotated[str, typer.Option(help="Which parameters are trained: see unmask finetune --help.")] = "full",
    epochs: Annotated[float | None, typer.Option(help="Passes over the training rows. Default: 3.")] = None,
    lr: Annotated[float | None, typer.Option(help="The peak learning rate. Default: that of the method.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows in a step. Default: 32.")] = None,
    max_length: Annotated[int | None, typer.Option(min=4, help="Most tokens in a row. Default: 128.")] = None,
    max_parallel: Annotated[int, typer.Option(min=0, help="Runs at the same time; 0: one per core.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.")] = "auto",
) -> None:
    """Fine-tune a model on every task of a folder with several seeds. Interrupted runs resume with the same command.

    Examples:

        unmask evaluate runs/bert --suite tasks/ --out suite/

        unmask evaluate runs/bert --suite tasks/ --tasks sst2,rte --seeds 5 --epochs 3 --lr 1e-4 --out suite5/
    """
    from unmask.evaluation.suite_file import read_suite
    from unmask.finetuning.methods.by_name import method_by_name

    method_by_name(method, {})
    names = [name.strip() for name in tasks.split(",") if name.strip()]
    found = read_suite(suite, names)
    given = {"epochs": epochs, "lr": lr, "batch-size": batch_size, "max-length": max_length}
    words = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]

    from unmask.api.evaluate_suite import PAGE, RESULTS, SuiteEvaluation
    from unmask.cli.ui.console import explain_interrupt, print_line
    from unmask.cli.ui.progress import TerminalReporter
    from unmask.cli.ui.score_tables import print_suite

    shared = ("--method", method, "--device", device, *words)
    with explain_interrupt(out):
        scores = SuiteEvaluation(source, found, shared, seeds, scratch, out, max_parallel, TerminalReporter()).run()
    print_suite(scores)
    print_line(f"The figures are in {out / RESULTS} and {out / PAGE}, each run in {out / 'runs'}.")

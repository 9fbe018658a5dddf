"""`evaluate`: a network and a folder of tasks in, one table out.

What arrives: the folder of a network, the folder of a suite. What leaves: a run for each task and seed, and a table.
What never happens here: the work; see `unmask/cli/evaluating.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    source: Annotated[Path, typer.Argument(help="The network: a run of pretrain, or a Hugging Face folder.")],
    suite: Annotated[Path, typer.Option(help="A folder of NAME.train.* and NAME.dev.* files, perhaps a suite.toml.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    seeds: Annotated[int, typer.Option(min=1, help="How often each task is tuned.")] = 3,
    tasks: Annotated[str, typer.Option(help="Only these tasks, with commas.")] = "",
    scratch: Annotated[
        bool, typer.Option("--scratch/--no-scratch", help="Also tune the same network with weights drawn anew.")
    ] = True,
    policy: Annotated[str, typer.Option(help="What may move: see unmask tune --help.")] = "full",
    epochs: Annotated[float | None, typer.Option(help="How often every row is learned from. Usual: 3.")] = None,
    rate: Annotated[float | None, typer.Option(help="The highest learning rate. Usual: that of the policy.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Rows in a step. Usual: 32.")] = None,
    length: Annotated[int | None, typer.Option(min=4, help="Most tokens in a row. Usual: 128.")] = None,
    at_once: Annotated[int, typer.Option(min=0, help="Runs that share the machine; 0: as many as it has cores.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.")] = "auto",
) -> None:
    """Tune a network on every task of a folder, with several seeds, and print one table. Starting again goes on.

    Examples:

        unmask evaluate runs/bert --suite tasks/ --out suite/

        unmask evaluate runs/bert --suite tasks/ --tasks sst2,rte --seeds 5 --epochs 3 --rate 1e-4 --out suite5/
    """
    from unmask.evaluation.suite_file import read_suite
    from unmask.finetuning.methods.by_name import method_by_name

    method_by_name(policy, {})
    only = [name.strip() for name in tasks.split(",") if name.strip()]
    found = read_suite(suite, only)
    given = {"epochs": epochs, "rate": rate, "batch": batch, "length": length}
    shared = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]

    from unmask.api.evaluate_suite import SuiteEvaluation

    SuiteEvaluation(
        source, found, ("--policy", policy, "--device", device, *shared), seeds, scratch, out, at_once
    ).run()

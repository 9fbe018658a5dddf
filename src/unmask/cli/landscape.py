"""`landscape`: the loss around the paths of fine-tuning, from a pre-trained model and from scratch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from unmask.reports.landscape_results import Landscape

_RESOLUTION, _MEASURED, _RUNS = "Resolution", "What is measured", "How it runs"


def landscape(
    source: Annotated[
        Path,
        typer.Argument(
            help="The network: a run of pretrain, or a Hugging Face folder of a BERT, RoBERTa, ALBERT, ERNIE 1.0 or "
            "ELECTRA."
        ),
    ],
    train_file: Annotated[Path, typer.Option(help="Training rows, as for finetune.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    dev_file: Annotated[
        Path | None, typer.Option(help="Rows to evaluate on; without it, a tenth of the training texts.")
    ] = None,
    epochs: Annotated[float, typer.Option(help="Passes over the training rows.")] = 3.0,
    lr: Annotated[float, typer.Option(help="The peak learning rate of both runs; for small models also 3e-4.")] = 5e-5,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in a step.")] = 32,
    max_length: Annotated[
        int | None, typer.Option(min=4, help="Most tokens in a row; longer ones are cut. Usual: 128.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the start, the order and the dropout.")] = 0,
    second: Annotated[
        str, typer.Option(help="The second run, for the second axis: a seed (usual: the next one), or a task file.")
    ] = "",
    points: Annotated[int, typer.Option(min=1, help="How often weights are kept along a run.")] = 12,
    grid: Annotated[int, typer.Option(help="Places along each axis of a map.", rich_help_panel=_RESOLUTION)] = 25,
    span: Annotated[
        str, typer.Option(help="From where to where: 0 is the start, 1 the end.", rich_help_panel=_RESOLUTION)
    ] = "-1,2",
    rows: Annotated[
        int,
        typer.Option(help="Rows to measure lines and numbers on, and as many dev rows.", rich_help_panel=_RESOLUTION),
    ] = 512,
    map_rows: Annotated[int, typer.Option(help="The same for each place of a map.", rich_help_panel=_RESOLUTION)] = 64,
    directions: Annotated[
        Literal["runs", "random"],
        typer.Option(help="Axes of the map: to the ends of two runs, or random ones.", rich_help_panel=_RESOLUTION),
    ] = "runs",
    task_type: Annotated[
        str, typer.Option(help="As for finetune; auto: the file decides.", rich_help_panel=_MEASURED)
    ] = "auto",
    text_columns: Annotated[
        str, typer.Option(help="The columns of the text, with commas.", rich_help_panel=_MEASURED)
    ] = "",
    label_column: Annotated[str, typer.Option(help="The column of the label.", rich_help_panel=_MEASURED)] = "",
    device: Annotated[
        str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.", rich_help_panel=_RUNS)
    ] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"],
        typer.Option(help="Numbers to train in; heights are measured in float32.", rich_help_panel=_RUNS),
    ] = "auto",
) -> None:
    """Show what pre-training changes: fine-tune from the model and from scratch, and draw the loss around both paths.

    The same command resumes. A finer --grid, other --rows or --directions use the same runs.

    Examples:

        unmask landscape runs/bert --train-file train.jsonl --dev-file dev.jsonl --out landscape/

        unmask landscape runs/bert --train-file train.jsonl --out quick/ --grid 9 --rows 64 --map-rows 32

        unmask landscape runs/bert --train-file train.jsonl --out other/ --second other.jsonl --directions random
    """
    from unmask.finetuning.data.columns import ColumnChoice
    from unmask.finetuning.task_data import load_task_data
    from unmask.finetuning.task_options import TaskOptions, parse_task_type
    from unmask.finetuning.tasks.protocol import default_max_length
    from unmask.lab.landscape.config import LandscapeConfig
    from unmask.reports.landscape_results import Directions

    wish = TaskOptions(task_type=parse_task_type(task_type), columns=ColumnChoice.parse(text_columns, label_column))
    low, high = _span(span)
    view = LandscapeConfig(
        low=low, high=high, grid=grid, rows=rows, map_rows=map_rows, directions=Directions(directions)
    )
    job = load_task_data(train_file, dev_file, wish, seed)

    from unmask.cli.ui.console import explain_interrupt, print_line
    from unmask.cli.ui.progress import TerminalReporter
    from unmask.finetuning.finetune import FineTune, FineTuneSettings, choose_max_length
    from unmask.lab.landscape.run import NUMBERS, PAGE, LandscapeStudy, read_second_axis
    from unmask.loading.open_model import open_model
    from unmask.train.run_config import default_run_config

    other = read_second_axis(second or str(seed + 1), job, wish, seed)
    opened = open_model(source)
    longest = choose_max_length(opened.model, max_length, default_max_length(job.task.task_type))
    how = FineTuneSettings(epochs=epochs, lr=lr, batch_size=batch_size, max_length=longest, seed=seed)
    run = replace(default_run_config(device, precision), keep_checkpoints=1, num_evals=points)
    tuning = FineTune(job, opened.model, opened.tokenizer, how, opened.name)
    with explain_interrupt(out):
        print_landscape(LandscapeStudy(tuning, other, view, run, out, TerminalReporter()).execute())
    print_line(f"The page is {out / PAGE}, all numbers are in {out / NUMBERS}.")


def print_landscape(found: Landscape) -> None:
    """The table of the measured numbers, and their interpretation."""
    from rich.table import Table

    from unmask.cli.ui.console import console, print_line
    from unmask.lab.landscape.verdict import comparison_rows, describe_verdict

    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("")
    for side in found.sides:
        shown.add_column(side.name, justify="right")
    for row in comparison_rows(found):
        shown.add_row(*row)
    console().print(shown)
    for sentence in describe_verdict(found):
        print_line(sentence)


def _span(written: str) -> tuple[float, float]:
    """Two numbers with a comma between them."""
    from unmask.core.errors import InputError

    try:
        low, high = map(float, written.split(","))
    except ValueError as error:
        raise InputError(f"--span needs two numbers with a comma, such as -1,2; found '{written}'.") from error
    return low, high

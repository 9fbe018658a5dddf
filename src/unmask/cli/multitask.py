"""`multitask`: one model fine-tuned on several tasks at once (MT-DNN)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def multitask(
    source: Annotated[
        Path,
        typer.Argument(
            help="The network: a run of pretrain, or a Hugging Face folder of a BERT, RoBERTa, ALBERT, ERNIE 1.0 or "
            "ELECTRA."
        ),
    ],
    tasks: Annotated[
        Path, typer.Argument(help="A TOML file: a table [tasks.NAME] with train, dev, task_type for each task.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    epochs: Annotated[float, typer.Option(help="Passes over the training rows.")] = 5.0,
    lr: Annotated[float, typer.Option(help="The peak learning rate; for small models also try 3e-4.")] = 5e-5,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in a step, all of one task.")] = 32,
    max_length: Annotated[int | None, typer.Option(min=4, help="Most tokens in a row. Usual: 128.")] = None,
    order: Annotated[
        Literal["mixed", "alternating"], typer.Option(help="Batches of all tasks shuffled, or one task after another.")
    ] = "mixed",
    then_each: Annotated[
        float, typer.Option(min=0, help="Epochs of each task alone afterwards, from the shared encoder. 0: none.")
    ] = 0.0,
    optimizer: Annotated[
        Literal["adamw", "adamax"], typer.Option(help="adamw as in finetune, or adamax as in MT-DNN's paper.")
    ] = "adamw",
    seed: Annotated[int, typer.Option(help="The seed of the new heads, the order and the dropout.")] = 0,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Initialise all weights randomly: a baseline.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.")] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="The floating-point type.")
    ] = "auto",
    cuda_graphs: Annotated[
        Literal["auto", "on", "off"], typer.Option(help="Record whole steps as CUDA graphs.")
    ] = "auto",
    no_kernels: Annotated[bool, typer.Option("--no-kernels", help="Without the Triton kernels.")] = False,
) -> None:
    """Fine-tune one model for several tasks at once, as MT-DNN does. The same command resumes after a stop.

    Examples:

        unmask multitask runs/bert tasks.toml --out many/

        unmask multitask runs/bert tasks.toml --out many/ --epochs 5 --lr 5e-5 --batch-size 32 --then-each 2

        unmask multitask runs/bert tasks.toml --out turns/ --order alternating --optimizer adamax --seed 1
    """
    from unmask.finetuning.multitask.task_file import read_tasks

    declared = read_tasks(tasks, seed)

    from unmask.api.finetune import FineTuneOptions
    from unmask.api.multitask import EACH, MultiTaskOptions, run_multitask
    from unmask.cli.ui.console import explain_interrupt, is_main_process
    from unmask.cli.ui.progress import TerminalReporter
    from unmask.cli.ui.score_tables import print_multitask_scores

    options = FineTuneOptions(
        epochs=epochs,
        lr=lr,
        batch_size=batch_size,
        max_length=max_length,
        seed=seed,
        from_scratch=from_scratch,
        device=device,
        precision=precision,
        cuda_graphs=cuda_graphs,
        no_kernels=no_kernels,
    )
    how = MultiTaskOptions(order=order, optimizer=optimizer, then_each=then_each)
    with explain_interrupt(out):
        run_multitask(source, declared, out, options, how, TerminalReporter())
    if is_main_process():
        print_multitask_scores(out, declared, out / EACH)

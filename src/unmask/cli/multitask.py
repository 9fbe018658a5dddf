"""`multitask`: a network and a file of tasks in, one network that answers all of them out.

What arrives: the folder of a network, a file that declares tasks, settings. What leaves: a folder with the trunk, and
in it one folder for each task, with its head, its answers and its scores.
What never happens here: the work; see `unmask.finetuning` and `unmask.train`.
"""

from __future__ import annotations

from dataclasses import replace
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
        Path, typer.Argument(help="A TOML file: a table [tasks.NAME] with train, dev, kind for each task.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    epochs: Annotated[float, typer.Option(help="How often every row of every task is learned from.")] = 5.0,
    rate: Annotated[float, typer.Option(help="The highest learning rate; for small networks also try 3e-4.")] = 5e-5,
    batch: Annotated[int, typer.Option(min=1, help="Rows in a step, all of one task.")] = 32,
    length: Annotated[int | None, typer.Option(min=4, help="Most tokens in a row. Usual: 128.")] = None,
    order: Annotated[
        Literal["mixed", "alternating"], typer.Option(help="Batches of all tasks shuffled, or one task after another.")
    ] = "mixed",
    then_each: Annotated[
        float, typer.Option(min=0, help="Epochs of each task alone afterwards, from the shared trunk. 0: none.")
    ] = 0.0,
    optimiser: Annotated[
        Literal["adamw", "adamax"], typer.Option(help="adamw as in tune, or adamax as in MT-DNN's paper.")
    ] = "adamw",
    seed: Annotated[int, typer.Option(help="The seed of the new heads, the order and the dropout.")] = 0,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Draw all weights anew, to compare with.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.")] = "auto",
    precision: Annotated[Literal["auto", "float32", "bfloat16"], typer.Option(help="Numbers to compute in.")] = "auto",
    graphs: Annotated[
        Literal["auto", "on", "off"], typer.Option(help="Whole steps as CUDA graphs; auto: on such a GPU.")
    ] = "auto",
    plain: Annotated[bool, typer.Option("--plain", help="Plain code: torch's kernels, every place computed.")] = False,
) -> None:
    """Tune one network for several tasks at once, as MT-DNN does. The same command goes on after a stop.

    Examples:

        unmask multitask runs/bert tasks.toml --out many/

        unmask multitask runs/bert tasks.toml --out many/ --epochs 5 --rate 5e-5 --batch 32 --then-each 2

        unmask multitask runs/bert tasks.toml --out turns/ --order alternating --optimiser adamax --seed 1
    """
    from unmask.finetuning.multitask.task_file import read_tasks

    declared = read_tasks(tasks, seed)

    from unmask.api.multitask import finetune_tasks
    from unmask.finetuning.finetune import FineTuneSettings, choose_max_length
    from unmask.finetuning.init_weights import StartFrom
    from unmask.finetuning.multitask.finetune import MultiTaskFineTune, OptimizerName
    from unmask.finetuning.multitask.schedule import TaskOrder
    from unmask.loading.open_model import open_model
    from unmask.train.distributed import init_distributed
    from unmask.train.run_config import default_run_config

    opened = open_model(source)
    how = FineTuneSettings(
        epochs=epochs,
        lr=rate,
        batch_size=batch,
        max_length=choose_max_length(opened.model, length),
        seed=seed,
        start=StartFrom.SCRATCH if from_scratch else StartFrom.PRETRAINED,
    )
    run = replace(
        default_run_config(device, precision, graphs, plain), keep_checkpoints=1, num_evals=max(1, round(epochs))
    )
    together = MultiTaskFineTune(
        declared, opened.model, opened.tokenizer, how, opened.name, TaskOrder(order), OptimizerName(optimiser)
    )
    with init_distributed(run.device) as processes:
        finetune_tasks(together, then_each, run, processes, out)

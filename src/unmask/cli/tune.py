"""`tune`: a network and a task file in, a network that answers the task out.

What arrives: the folder of a network, task files, settings. What leaves: a folder with the tuned network, its answers
to the rows it never learned from, and its scores.
What never happens here: the work; see `unmask.tune` and `unmask.train`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def tune(
    source: Annotated[Path, typer.Argument(help="The network: a run of pretrain, or a Hugging Face folder of a BERT.")],
    task: Annotated[Path, typer.Option(help="Rows to learn from: .jsonl, .csv or .tsv, also with .gz.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    dev: Annotated[Path | None, typer.Option(help="Rows to judge by; without it, 1 text in 10 is set aside.")] = None,
    epochs: Annotated[float, typer.Option(help="How often every row is learned from.")] = 3.0,
    rate: Annotated[float, typer.Option(help="The highest learning rate; for small networks also try 3e-4.")] = 5e-5,
    batch: Annotated[int, typer.Option(min=1, help="Rows in a step.")] = 32,
    length: Annotated[
        int | None, typer.Option(min=4, help="Most tokens in a row; longer ones are cut. Usual: 128.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the new head, the order and the dropout.")] = 0,
    kind: Annotated[
        Literal["auto", "classify", "regress"], typer.Option(help="A class or a number; auto: the labels decide.")
    ] = "auto",
    fields: Annotated[str, typer.Option(help="The field of the text, or two with a comma. Numbers: no header.")] = "",
    label: Annotated[str, typer.Option(help="The field of the label.")] = "",
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Draw all weights anew, to compare with.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.")] = "auto",
    precision: Annotated[Literal["auto", "float32", "bfloat16"], typer.Option(help="Numbers to compute in.")] = "auto",
) -> None:
    """Fine-tune a network on a task: classes or numbers for texts, or for pairs. The same command goes on after a stop.

    Examples:

        unmask tune runs/bert --task train.jsonl --dev dev.jsonl --out tuned/

        unmask tune runs/bert --task reviews.csv --out reviews/ --epochs 3 --rate 5e-5 --batch 32 --length 128 --seed 0

        unmask tune runs/bert --task pairs.tsv --fields question1,question2 --label same --out scratch/ --from-scratch
    """
    from unmask.tune.fields import Choice
    from unmask.tune.job import read_job
    from unmask.tune.row_task import Kind

    texts = tuple(name.strip() for name in fields.split(",") if name.strip())
    wanted = None if kind == "auto" else Kind(kind)
    job = read_job(task, dev, Choice(texts, label.strip()), wanted, seed)

    from unmask.cli.tuning import work
    from unmask.export.source import open_source
    from unmask.train.processes import joined
    from unmask.train.run import Run, choose_device, choose_micro, choose_precision
    from unmask.tune.full import FullTune, Settings, fitting_length
    from unmask.tune.start import Origin

    opened, where = open_source(source), choose_device(device)
    how = Settings(
        epochs=epochs,
        rate=rate,
        batch=batch,
        length=fitting_length(opened.model, length),
        seed=seed,
        start=Origin.SCRATCH if from_scratch else Origin.PRETRAINED,
    )
    run = Run(
        device=where,
        precision=choose_precision(where, precision),
        micro=choose_micro(where),
        keep=1,
        trials=max(1, round(epochs)),
    )
    with joined(where) as processes:
        work(FullTune(job, opened.model, opened.tokenizer, how, opened.name), run, processes, out)

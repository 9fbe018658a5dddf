"""`embed`: files of texts as one `.npy` array of vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask.config.inference import CheckpointChoice
from unmask.config.pooling import Pooling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unmask.core.records import Floats
    from unmask.nets.model import EncoderWithHeads

_LAST = "last"


def embed(
    source: Annotated[Path, typer.Argument(help="A run folder of pretrain, or a Hugging Face folder.")],
    files: Annotated[list[str], typer.Argument(help=".txt .jsonl .csv .tsv, also .gz; - for standard input.")],
    out: Annotated[Path, typer.Option(help="The .npy file to write.")],
    pooling: Annotated[Pooling, typer.Option(help="How token states become one vector.")] = Pooling.MEAN,
    layer: Annotated[str, typer.Option(help="Which layer: last, or a number; 0 is the embeddings.")] = _LAST,
    field: Annotated[str, typer.Option(help="The field or column that holds the text.")] = "text",
    batch_size: Annotated[int, typer.Option(min=1, help="Texts in a batch.")] = 64,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale vectors to length 1.")] = False,
    checkpoint: Annotated[CheckpointChoice, typer.Option(help="Which checkpoint of a run.")] = CheckpointChoice.LAST,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")] = "auto",
) -> None:
    """Turn texts into vectors: one row for each line of a .txt, each row of a .jsonl, .csv or .tsv, in order.

    Examples:

        unmask embed runs/bert lines.txt --out vectors.npy

        unmask embed exported/ reviews.csv --field review --pooling first --out vectors.npy --normalize

        zcat lines.txt.gz | unmask embed runs/bert - --layer 1 --out vectors.npy
    """
    from unmask.inference.embed import LayerPooling
    from unmask.inference.embed import embed as embed_texts
    from unmask.loading.open_model import open_model
    from unmask.train.run_config import pick_device

    _check_out(out)
    total = _count(files, field)
    texts = _require_texts(files, field)
    opened = open_model(source, checkpoint)
    model = opened.model.to(pick_device(device))
    how = LayerPooling(_layer(layer, model), pooling, normalize)
    cut: list[int] = []
    blocks = embed_texts(model, opened.tokenizer, texts, how, batch_size, cut.append)
    rows = _write(out, blocks, model.config.width, total)
    _print_result(out, rows, model, sum(cut))


def _count(files: list[str], field: str) -> int:
    """How many texts there are. Reading is fast, and a bad row is found before the computation."""
    from unmask.inference.text_files import read_texts

    return 0 if "-" in files else sum(1 for _ in read_texts(files, field))


def _require_texts(files: list[str], field: str) -> Iterator[str]:
    """The texts, of which there must be one. Checked before the network is loaded."""
    from itertools import chain

    from unmask.core.errors import InputError
    from unmask.inference.text_files import read_texts

    texts = read_texts(files, field)
    for first in texts:
        return chain([first], texts)
    named = " and ".join("standard input" if name == "-" else name for name in files)
    raise InputError(f"There is no text in {named}. Give a file with a text on each line, or in each of its rows.")


def _write(out: Path, blocks: Iterator[Floats], width: int, total: int) -> int:
    """Write what is computed, and show how it goes on; returns the number of rows."""
    from unmask.cli.ui.progress import progress
    from unmask.inference.embed import write_vectors

    out.parent.mkdir(parents=True, exist_ok=True)
    with progress("embedding", total) as tick:

        def shown() -> Iterator[Floats]:
            done = 0
            for block in blocks:
                yield block
                done += len(block)
                tick(done, f"{done:,} texts")

        rows, _ = write_vectors(out, shown(), width)
    return rows


def _print_result(out: Path, rows: int, model: EncoderWithHeads, cut: int) -> None:
    from unmask.cli.ui.console import print_line

    print_line(f"{out}: {rows:,} vectors of {model.config.width} numbers, float32")
    if cut:
        print_line(
            f"note: {cut:,} of {rows:,} texts are longer than the {model.max_positions} tokens that this network "
            "reads; their ends were cut off.",
            stderr=True,
        )


def _check_out(out: Path) -> None:
    """Refuse before the work what could not be written after it."""
    from unmask.core.errors import InputError

    if out.is_dir():
        raise InputError(f"--out {out} is a folder. Name a file, such as {out / 'vectors.npy'}.")
    if out.suffix != ".npy":
        raise InputError(f"--out {out}: vectors are written as .npy. Name it {out.with_suffix('.npy')}.")


def _layer(written: str, model: EncoderWithHeads) -> int:
    from unmask.core.errors import InputError

    if written == _LAST:
        return model.config.depth
    if not written.isdecimal():
        raise InputError(f"--layer needs 'last' or a number from 0 to {model.config.depth}, found '{written}'.")
    return int(written)

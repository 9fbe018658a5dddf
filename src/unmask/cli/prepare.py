"""`prepare`: from any pile of text to shards that a member can be trained on.

What arrives: files and wishes. What leaves: a prepared folder, and a summary of what went in and what was left out.
What never happens here: the work itself; see `shards/prepare.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from unmask.cli.wishes import Wishes
    from unmask.shards.manifest import Manifest
    from unmask.tokenize.tokenizer import Tokenizer


def prepare(
    corpus: Annotated[list[str], typer.Argument(help="Files, folders, patterns, or - for standard input.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    for_: Annotated[str, typer.Option("--for", help="The member that will be trained on it.")] = "bert",
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json to use instead of training one.")] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Entries of a trained vocabulary.")] = None,
    layers: Annotated[str, typer.Option(help="Further layers to find: phrase, entity, or both with a comma.")] = "",
    field: Annotated[str, typer.Option(help="The JSON field or table column that holds the text.")] = "text",
    layout: Annotated[
        Literal["blank-line", "line"], typer.Option(help=".txt: documents end at blank lines, or at every line.")
    ] = "blank-line",
    entities_field: Annotated[str, typer.Option(help="A field with given entities: [[start, end, label], ...].")] = "",
    dictionary: Annotated[list[Path] | None, typer.Option(help="Words for the segmenter, one a line.")] = None,
    terms: Annotated[list[Path] | None, typer.Option(help="Entities to match, one a line, a tab and a label.")] = None,
    phrases: Annotated[Path | None, typer.Option(help="Phrases to mark, one a line, instead of learning them.")] = None,
    near_duplicates: Annotated[float, typer.Option(help="Leave out documents this similar, e.g. 0.8; 0: do not.")] = 0,
    shortest: Annotated[int, typer.Option(help="Leave out documents with fewer visible characters.")] = 2,
    processes: Annotated[int, typer.Option("--processes", "-j", help="Processes; 0: one for each core.")] = 0,
) -> None:
    """Clean, split, segment, tokenise and shard a corpus. Kill it at any moment: the same command goes on.

    Examples:

        unmask prepare corpus/*.jsonl.gz --for wwm --out data/

        unmask prepare notes.txt --layout line --vocab-size 8000 --out data/

        zcat wiki.txt.gz | unmask prepare - --for roberta --out data/
    """
    from unmask.cli.wishes import Wishes

    wishes = Wishes(
        member=for_,
        tokenizer=tokenizer,
        vocab_size=vocab_size or 0,
        layers=tuple(part.strip() for part in layers.split(",") if part.strip()),
        field=field,
        one_line=layout == "line",
        entities_field=entities_field,
        dictionaries=tuple(dictionary or ()),
        terms=tuple(terms or ()),
        phrases=phrases,
        near_duplicates=near_duplicates,
        shortest=shortest,
    )
    run(corpus, out, wishes, processes)


def run(corpus: list[str], out: Path, wishes: Wishes, processes: int = 0) -> Manifest:
    """Prepare, with progress and a summary."""
    import os

    from unmask.cli.terminal import console
    from unmask.shards.manifest import Manifest
    from unmask.shards.prepare import claim

    settings = wishes.describe(corpus)
    with claim(out, corpus, settings) as finished:
        if finished:
            console(stderr=True).print(f"{out} is prepared already.")
            manifest = Manifest.load(out)
        else:
            sources = _spooled(corpus, out)
            manifest = _work(sources, out, wishes, processes or os.cpu_count() or 1)
    _summary(manifest, out)
    return manifest


def _work(sources: list[str], out: Path, wishes: Wishes, processes: int) -> Manifest:
    from unmask.cli.progress import progress
    from unmask.shards.prepare import Progress, prepare
    from unmask.text.sources import total_bytes

    trained = _tokenizer(sources, out, wishes)
    how = wishes.preparing(sources, out)
    with progress("preparing", total_bytes(sources)) as tick:

        def tell(now: Progress) -> None:
            tick(now.position, f"{now.counts.tokens / 1e6:.1f} M tokens")

        manifest, tally = prepare(sources, out, how, trained, processes, tell)
    _report_drops(tally.listed, out)
    return manifest


def _tokenizer(sources: list[str], out: Path, wishes: Wishes) -> Tokenizer:
    """The given tokenizer, the one trained before an interruption, or a new one."""
    from unmask.cli.progress import progress
    from unmask.shards.files import write_text
    from unmask.shards.learn import sample, texts
    from unmask.text.sources import total_bytes
    from unmask.tokenize.tokenizer import Tokenizer
    from unmask.tokenize.train import train

    path = out / "tokenizer.json"
    if not path.exists():
        if wishes.tokenizer is not None:
            made = Tokenizer.load(wishes.tokenizer)
        else:
            with progress(f"learning a vocabulary ({wishes.spec.size:,} entries)", total_bytes(sources)):
                made = train(wishes.spec, texts(sample(sources, wishes.collecting)))
        write_text(path, made.pipeline.to_str(pretty=True))
    return Tokenizer.load(path)


def _spooled(corpus: list[str], out: Path) -> list[str]:
    """Standard input can be read once only, so it is stored first: a vocabulary is learned before it is used."""
    import shutil
    import sys

    if "-" not in corpus:
        return corpus
    stream = sys.stdin.buffer
    first = stream.read(1)
    while first.isspace():
        first = stream.read(1)
    path = out / ("stdin.jsonl" if first == b"{" else "stdin.txt")
    with path.open("wb") as file:
        file.write(first)
        shutil.copyfileobj(stream, file)
    return [str(path) if name == "-" else name for name in corpus]


def _report_drops(listed: list, out: Path) -> None:  # type: ignore[type-arg]
    from itertools import groupby

    from unmask.cli.terminal import console

    screen = console(stderr=True)
    for reason, pieces in groupby(sorted(listed, key=lambda piece: piece.reason), lambda piece: piece.reason):
        some = list(pieces)
        if reason in ("exact duplicate", "near duplicate", "near-empty document"):
            continue
        for piece in some[:3]:
            screen.print(f"left out, {reason}: {piece.where}: {piece.detail}", markup=False)
        if len(some) > 3:
            screen.print(f"left out, {reason}: and {len(some) - 3} more; see {out / 'dropped.jsonl'}", markup=False)


def _summary(manifest: Manifest, out: Path) -> None:
    from rich.table import Table

    from unmask.cli.terminal import console

    counts = manifest.counts
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("documents", f"{counts.documents:,}")
    table.add_row("sentences", f"{counts.sentences:,}")
    table.add_row("words", f"{counts.words:,}")
    for name in ("phrases", "entities"):
        if getattr(counts, name):
            table.add_row(name, f"{getattr(counts, name):,}")
    unknown = 100 * counts.unknown / max(counts.tokens, 1)
    table.add_row("tokens", f"{counts.tokens:,} ({counts.characters:,} characters; {unknown:.2f} % unknown)")
    for reason, number in manifest.dropped.items():
        table.add_row("left out", f"{number:,} {reason}")
    for reason, number in manifest.changed.items():
        table.add_row("taken out", f"{number:,} {reason}")
    table.add_row("layers", ", ".join(manifest.layers))
    table.add_row("corpus", str(out))
    console().print(table)

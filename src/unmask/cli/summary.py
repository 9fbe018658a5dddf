"""What a person reads when a corpus is prepared: what was left out and where, and what there is now.

What arrives: the tally of preparing, and the manifest. What leaves: lines on the screen.
What never happens here: a number that is not in the manifest or the tally.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from pathlib import Path

from rich.table import Table
from rich.text import Text

from unmask.cli.terminal import console
from unmask.shards.collect import Tally
from unmask.shards.manifest import Manifest
from unmask.text.reasons import Reason
from unmask.tokenize.tokenizer import Tokenizer

_SHOWN = 3
_MANY_UNKNOWN = 2.0
"""Per cent of the tokens."""
_ORDINARY = {Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.NEAR_EMPTY}
"""Reasons that need no look at the file; they are counted in the summary."""


def left_out(tally: Tally, out: Path) -> None:
    """Name the first pieces that were left out for each reason that a person may want to mend."""
    screen = console(stderr=True)
    by_reason = attrgetter("reason")
    for reason, pieces in groupby(sorted(tally.listed, key=by_reason), by_reason):
        if reason in _ORDINARY:
            continue
        for piece in list(pieces)[:_SHOWN]:
            screen.print(f"left out, {reason}: {piece.where}: {piece.detail}", markup=False, soft_wrap=True)
        if tally.dropped[reason] > _SHOWN:
            rest = f"and {tally.dropped[reason] - _SHOWN:,} more; see {out / 'dropped.jsonl'}"
            screen.print(f"left out, {reason}: {rest}", markup=False, soft_wrap=True)


def summary(manifest: Manifest, out: Path, asked: int) -> None:
    """Print what the corpus holds. `asked` is the size that the vocabulary should have had; 0 if it was given."""
    counts = manifest.counts
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("documents", f"{counts.documents:,}")
    table.add_row("sentences", f"{counts.sentences:,}")
    table.add_row("words", f"{counts.words:,} (words that share a token count as one)")
    for name in ("phrases", "entities"):
        if getattr(counts, name):
            table.add_row(name, f"{getattr(counts, name):,}")
    size = Tokenizer.load(out / "tokenizer.json").vocab.size
    less = f" ({asked:,} were asked for; the text holds no more)" if size < asked else ""
    table.add_row("vocabulary", f"{size:,} entries{less}")
    unknown = 100 * counts.unknown / max(counts.tokens, 1)
    table.add_row("tokens", f"{counts.tokens:,} ({counts.characters:,} characters; {unknown:.2f} % unknown)")
    for reason, number in manifest.dropped.items():
        table.add_row("left out", f"{number:,} {reason}")
    for reason, number in manifest.changed.items():
        table.add_row("taken out", f"{number:,} {reason}")
    table.add_row("layers", ", ".join(manifest.layers))
    console().print(table)
    console().print(Text.assemble(("corpus      ", "bold"), str(out)), soft_wrap=True)
    if unknown > _MANY_UNKNOWN:
        console(stderr=True).print(
            f"unmask: {unknown:.1f} % of the tokens are unknown to this vocabulary. Take a larger one (--vocab-size), "
            "or one that was made for such text.",
            soft_wrap=True,
        )

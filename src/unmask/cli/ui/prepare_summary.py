"""The summary of a prepared corpus in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unmask.cli.ui.console import print_facts, print_line, print_path
from unmask.data.corpus.manifest import Manifest
from unmask.data.text.drop_reasons import format_drop_count
from unmask.data.tokenize.tokenizer import Tokenizer

_MANY_UNKNOWN = 2.0
"""Per cent of the tokens."""


def print_summary(manifest: Manifest, out: Path, requested_size: int) -> None:
    """Print what the corpus holds. `requested_size`: of the vocabulary; 0 if the tokenizer was given."""
    size = Tokenizer.load(out / "tokenizer.json").vocab.size
    print_facts(_facts(manifest, size, requested_size))
    print_path("corpus", out)
    unknown = _unknown(manifest)
    if unknown > _MANY_UNKNOWN:
        print_line(
            f"note: {unknown:.1f} % of the tokens are unknown to this vocabulary. {_advice(size, requested_size)}",
            stderr=True,
        )


def _advice(size: int, requested: int) -> str:
    """What would leave fewer tokens unknown. What comes once gets no entry: see `min_count` of `WordPiece`."""
    if not requested:
        return "Take one that was made for such text, or leave --tokenizer out to learn one."
    if size < requested:
        return "Prepare more text: a character gets an entry only if it comes at least twice."
    return "Take a larger one (--vocab-size), or one that was made for such text."


def _facts(manifest: Manifest, size: int, requested: int) -> Iterator[tuple[str, str]]:
    counts = manifest.counts
    yield "documents", f"{counts.documents:,}"
    if counts.dialogues:
        yield "dialogues", f"{counts.dialogues:,} of them, with {counts.turns:,} turns"
    yield "sentences", f"{counts.sentences:,}"
    yield "words", f"{counts.words:,} (words that share a token count as one)"
    if counts.phrases:
        yield "phrases", f"{counts.phrases:,}"
    if counts.entities:
        yield "entities", f"{counts.entities:,}"
    less = f" ({requested:,} were requested; the text holds no more)" if size < requested else ""
    yield "vocabulary", f"{size:,} entries{less}"
    yield "tokens", f"{counts.tokens:,} ({counts.characters:,} characters; {_unknown(manifest):.2f} % unknown)"
    for reason, number in manifest.dropped.items():
        yield "left out", format_drop_count(number, reason)
    for reason, number in manifest.changed.items():
        yield "taken out", f"{number:,} {reason}"
    yield "layers", ", ".join(manifest.layers)


def _unknown(manifest: Manifest) -> float:
    """Per cent of the tokens that the vocabulary has no entry for."""
    return 100 * manifest.counts.unknown / max(manifest.counts.tokens, 1)

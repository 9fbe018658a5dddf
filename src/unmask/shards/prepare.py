"""From any pile of text to a prepared corpus: clean, split, segment, tokenise, shard.

What arrives: sources, settings, a folder. What leaves: the folder with shards, tokenizer and manifest.
What never happens here: lost work. A shard is a pure function of its documents and appears whole or not at all; started
again, the same command goes on where it was, and ends with the same bytes whatever the number of processes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unmask.errors import CorpusError, InputError
from unmask.records import Layer
from unmask.shards.batch import Batch
from unmask.shards.collect import Collecting, Tally, batches, collect
from unmask.shards.engine import run
from unmask.shards.files import digest_of_bytes, read_json, write_text
from unmask.shards.manifest import Counts, Manifest, ShardInfo, shard_folder, shard_info
from unmask.shards.writer import ShardWriter
from unmask.text.part import Annotate
from unmask.text.reasons import Reason
from unmask.tokenize.tokenizer import Tokenizer

SMALLEST, LARGEST = 100_000, 8_000_000


@dataclass(frozen=True, slots=True)
class Preparing:
    """Everything that decides what the shards hold."""

    collecting: Collecting
    annotators: tuple[Annotate, ...]
    """Sentences, words, entities, phrases: applied in this order."""
    layers: tuple[Layer, ...]
    """The layers that these annotators mark."""
    shard_characters: int

    def describe(self) -> dict[str, Any]:
        """Every step with its settings: the same lines mean the same shards."""
        return {
            **self.collecting.describe(),
            "units": [annotator.describe() for annotator in self.annotators],
            "characters in a shard": self.shard_characters,
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """How far preparing has come."""

    position: int
    """Bytes of input, as they lie on disk."""
    counts: Counts
    reused: bool
    """Whether this shard was there already."""


def shard_size(total_bytes: int) -> int:
    """Characters in a shard: 50 to 150 shards, neither tiny nor huge. It depends on the input alone."""
    return min(max(total_bytes // 150, SMALLEST), LARGEST)


def prepare(
    sources: Sequence[str],
    folder: Path,
    how: Preparing,
    tokenizer: Tokenizer,
    processes: int,
    progress: Callable[[Progress], None] = lambda _: None,
) -> tuple[Manifest, Tally]:
    """Prepare a corpus, or go on with one that was begun. The caller holds the folder (`claim.py`)."""
    tally = Tally()
    infos: dict[int, ShardInfo] = {}
    counts, furthest = Counts(), 0

    def done(number: int, info: ShardInfo, position: int, reused: bool) -> None:
        nonlocal counts, furthest
        infos[number] = info
        counts, furthest = counts + info.counts, max(furthest, position)
        progress(Progress(furthest, counts, reused))

    def unfinished() -> Iterator[Batch]:
        for batch in batches(sources, how.collecting, how.shard_characters, tally):
            info = _finished(folder, batch)
            if info is None:
                yield batch
            else:
                done(batch.number, info, batch.position, True)

    make = partial(ShardWriter, folder, how.annotators, folder / "tokenizer.json")
    for number, info, position in run(unfinished(), make, processes):
        done(number, info, position, False)
    if not counts.tokens:
        raise InputError(f"Nothing is left to prepare: the tokenizer leaves no tokens of {counts.empty:,} documents.")
    return _finish(folder, how, tokenizer, [infos[i] for i in range(len(infos))], tally), tally


def require_text(sources: Sequence[str], how: Collecting) -> None:
    """Refuse input of which nothing is kept, before anything is written."""
    tally = Tally()
    if next(collect(sources, how, tally), None) is not None:
        return
    first = "; ".join(f"{piece.where}: {piece.reason} ({piece.detail})" for piece in tally.listed[:3])
    raise InputError(
        f"Nothing is left to prepare: {sum(tally.dropped.values()):,} pieces of input were left out, and no document "
        f"remains. The first were: {first}."
    )


def _finished(folder: Path, batch: Batch) -> ShardInfo | None:
    """The record of a shard that is there already; refuses one that was made of other text."""
    path = shard_folder(folder, batch.number) / "info.json"
    if not path.exists():
        return None
    info = shard_info(read_json(path))
    if info.source != batch.source:
        raise CorpusError(
            f"{path.parent} was made of other text than the input holds now (near {batch.documents[0].id}). "
            "The input has changed since preparing began: choose a new folder for --out."
        )
    return info


def _finish(folder: Path, how: Preparing, tokenizer: Tokenizer, infos: list[ShardInfo], tally: Tally) -> Manifest:
    corpus = digest_of_bytes("".join(info.source for info in infos).encode())
    listed = [{"reason": piece.reason, "where": piece.where, "detail": piece.detail} for piece in tally.listed]
    write_text(folder / "dropped.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in listed))
    counts = sum((info.counts for info in infos), Counts())
    dropped = tally.dropped + Counter({str(Reason.NO_TOKENS): counts.empty})
    manifest = Manifest(
        tokenizer=tokenizer.digest,
        corpus=corpus,
        layers=how.layers,
        steps=how.describe(),
        counts=counts,
        dropped=dict(sorted(dropped.items())),
        changed={"control characters": tally.removed} if tally.removed else {},
        shards=tuple(infos),
    )
    manifest.save(folder / "manifest.json")
    return manifest

"""Corpus preparation: clean, split, segment, tokenize and shard text, resumable.

A shard is a pure function of its documents and is written atomically. A restarted command resumes, and the result is
byte-equal for any number of processes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unmask.core.errors import CorpusError, InputError
from unmask.core.io.atomic import digest_bytes, read_json, write_text
from unmask.core.io.process_pool import map_in_processes
from unmask.core.records import UnitKind
from unmask.data.corpus.document_stream import CollectConfig, DropCounts, shard_inputs, stream_documents
from unmask.data.corpus.manifest import Counts, Manifest, ShardInfo, shard_folder, shard_info
from unmask.data.corpus.shard_worker import ShardInput, ShardWorker
from unmask.data.text.drop_reasons import DropReason
from unmask.data.text.protocol import Annotator
from unmask.data.tokenize.tokenizer import Tokenizer

MIN_SHARD_CHARACTERS, MAX_SHARD_CHARACTERS = 100_000, 8_000_000


@dataclass(frozen=True, slots=True)
class PrepareConfig:
    """The settings that decide the content of the shards."""

    collect_config: CollectConfig
    annotators: tuple[Annotator, ...]
    """Annotators of sentences, words, entities and phrases, applied in this order."""
    layers: tuple[UnitKind, ...]
    """The unit kinds of these annotators."""
    shard_characters: int

    def describe(self) -> dict[str, Any]:
        """All steps with their settings: equal descriptions give equal shards."""
        return {
            **self.collect_config.describe(),
            "units": [annotator.describe() for annotator in self.annotators],
            "characters in a shard": self.shard_characters,
        }


@dataclass(frozen=True, slots=True)
class PrepareProgress:
    """The progress of the preparation."""

    position: int
    """Bytes of input on disk."""
    counts: Counts
    reused: bool
    """Whether this shard existed already."""


def shard_size(total_bytes: int) -> int:
    """Characters in a shard, for 50 to 150 shards. Depends on the input alone."""
    return min(max(total_bytes // 150, MIN_SHARD_CHARACTERS), MAX_SHARD_CHARACTERS)


def prepare(
    sources: Sequence[str],
    folder: Path,
    config: PrepareConfig,
    tokenizer: Tokenizer,
    processes: int,
    progress: Callable[[PrepareProgress], None] = lambda _: None,
) -> tuple[Manifest, DropCounts]:
    """Prepare or resume a corpus. The caller holds the folder lock (`corpus_folder.py`)."""
    tally = DropCounts()
    infos: dict[int, ShardInfo] = {}
    counts, furthest = Counts(), 0

    def done(number: int, info: ShardInfo, position: int, reused: bool) -> None:
        nonlocal counts, furthest
        infos[number] = info
        counts, furthest = counts + info.counts, max(furthest, position)
        progress(PrepareProgress(furthest, counts, reused))

    def unfinished() -> Iterator[ShardInput]:
        for batch in shard_inputs(sources, config.collect_config, config.shard_characters, tally):
            info = _load_finished(folder, batch)
            if info is None:
                yield batch
            else:
                done(batch.number, info, batch.position, True)

    make = partial(ShardWorker, folder, config.annotators, folder / "tokenizer.json")
    for number, info, position in map_in_processes(unfinished(), make, processes):
        done(number, info, position, False)
    if not counts.tokens:
        raise InputError(f"Nothing is left to prepare: the tokenizer leaves no tokens of {counts.empty:,} documents.")
    return _finish(folder, config, tokenizer, [infos[i] for i in range(len(infos))], tally), tally


def check_not_empty(sources: Sequence[str], config: CollectConfig) -> None:
    """Refuse input without any document, before anything is written."""
    tally = DropCounts()
    if next(stream_documents(sources, config, tally), None) is not None:
        return
    first = "; ".join(f"{piece.where}: {piece.reason} ({piece.detail})" for piece in tally.listed[:3])
    raise InputError(
        f"Nothing is left to prepare: {sum(tally.dropped.values()):,} pieces of input were left out, and no document "
        f"remains. The first were: {first}."
    )


def _load_finished(folder: Path, batch: ShardInput) -> ShardInfo | None:
    """The record of an existing shard; a shard of other text is refused."""
    path = shard_folder(folder, batch.number) / "info.json"
    if not path.exists():
        return None
    info = shard_info(read_json(path))
    if info.source != batch.digest:
        raise CorpusError(
            f"{path.parent} was made of other text than the input holds now (near {batch.documents[0].id}). "
            "The input has changed since preparing began: choose a new folder for --out."
        )
    return info


def _finish(
    folder: Path, how: PrepareConfig, tokenizer: Tokenizer, infos: list[ShardInfo], tally: DropCounts
) -> Manifest:
    corpus = digest_bytes("".join(info.source for info in infos).encode())
    listed = [{"reason": piece.reason, "where": piece.where, "detail": piece.detail} for piece in tally.listed]
    write_text(folder / "dropped.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in listed))
    counts = sum((info.counts for info in infos), Counts())
    dropped = tally.dropped + Counter({str(DropReason.NO_TOKENS): counts.empty})
    manifest = Manifest(
        tokenizer=tokenizer.digest,
        corpus=corpus,
        layers=how.layers,
        steps=how.describe(),
        counts=counts,
        dropped=dict(sorted(dropped.items())),
        changed={"control characters": tally.num_removed_chars} if tally.num_removed_chars else {},
        shards=tuple(infos),
    )
    manifest.save(folder / "manifest.json")
    return manifest

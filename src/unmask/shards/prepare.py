"""From any pile of text to a prepared corpus: clean, split, segment, tokenise, shard.

What arrives: sources, settings, a folder. What leaves: the folder with shards, tokenizer and manifest.
What never happens here: lost work. A shard is a pure function of its documents and appears whole or not at all; started
again, the same command goes on where it was, and ends with the same bytes whatever the number of processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unmask.errors import CorpusError, InputError
from unmask.records import Layer
from unmask.shards.collect import Batch, Collecting, Tally, batches
from unmask.shards.engine import run
from unmask.shards.files import read_json, write_json, write_text
from unmask.shards.manifest import Counts, Manifest, ShardInfo, shard_info
from unmask.shards.write import write_shard
from unmask.text.part import Annotate
from unmask.text.sources import find_sources
from unmask.tokenize.encode import Encoder
from unmask.tokenize.tokenizer import Tokenizer

SMALLEST, LARGEST = 500_000, 16_000_000


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
    """Characters in a shard: about 64 shards, neither tiny nor huge. It depends on the input alone."""
    return min(max(total_bytes // 64, SMALLEST), LARGEST)


def prepare(
    sources: Sequence[str],
    folder: Path,
    how: Preparing,
    tokenizer: Tokenizer,
    processes: int,
    progress: Callable[[Progress], None] = lambda _: None,
) -> tuple[Manifest, Tally]:
    """Prepare a corpus, or go on with one that was begun. The caller holds the folder's lock (`claim`)."""
    tally = Tally()
    infos: dict[int, ShardInfo] = {}
    counts = Counts()

    def done(number: int, info: ShardInfo, position: int, reused: bool) -> None:
        nonlocal counts
        infos[number] = info
        counts = counts + info.counts
        progress(Progress(position, counts, reused))

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
    if not infos:
        raise InputError(
            f"Nothing is left to prepare: {sum(tally.dropped.values())} pieces of input were left out "
            f"({_reasons(tally)}), and no document remains."
        )
    return _finish(folder, how, tokenizer, [infos[i] for i in range(len(infos))], tally), tally


class ShardWriter:
    """Makes one shard after another in one process; the encoder keeps its cache between them."""

    def __init__(self, folder: Path, annotators: tuple[Annotate, ...], tokenizer: Path) -> None:
        self.folder, self.annotators = folder, annotators
        loaded = Tokenizer.load(tokenizer)
        self.encoder = Encoder(loaded)
        self.vocab = loaded.vocab

    def __call__(self, batch: Batch) -> tuple[int, ShardInfo, int]:
        """Find the units of every document, tokenise, write."""
        docs = []
        for document in batch.documents:
            for annotate in self.annotators:
                document = annotate(document)
            docs.append(self.encoder(document))
        path = self.folder / "shards" / f"{batch.number:05d}"
        characters = sum(len(document.text) for document in batch.documents)
        info = write_shard(path, docs, (self.vocab.size, self.vocab.unk), batch.source, characters)
        return batch.number, info, batch.position


@contextlib.contextmanager
def claim(folder: Path, sources: Sequence[str], settings: dict[str, Any]) -> Iterator[bool]:
    """Take a folder for one corpus and one process at a time. True when it is finished already.

    The settings and the names and sizes of the sources are written to `work.json`; a folder that was begun with others,
    or that holds something else, is refused.
    """
    mine = {
        "sources": [[source.name, source.size] for source in find_sources(sources)],
        "settings": json.loads(json.dumps(settings)),
    }
    _check_folder(folder, mine)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CorpusError(f"Another process is preparing {folder} right now. Wait for it, or stop it.") from error
        (folder / "shards").mkdir(exist_ok=True)
        if not (folder / "work.json").exists():
            write_json(folder / "work.json", mine)
        yield (folder / "manifest.json").exists()


def _check_folder(folder: Path, mine: dict[str, Any]) -> None:
    work = folder / "work.json"
    if not work.exists():
        if folder.exists() and any(path.name != ".lock" for path in folder.iterdir()):
            raise CorpusError(f"{folder} is not empty and holds no corpus of unmask. Choose a new folder for --out.")
        return
    theirs = read_json(work)
    if theirs == mine:
        return
    what = next(key for key in ("sources", "settings") if theirs.get(key) != mine[key])
    if what == "settings":
        was, now = theirs.get(what, {}), mine[what]
        name = next(key for key in {**was, **now} if was.get(key) != now.get(key))
        detail = f"'{name}' was {was.get(name)!r} and is now {now.get(name)!r}"
    else:
        detail = "the input files are others, or have other sizes"
    raise CorpusError(
        f"{folder} already holds another corpus, or one prepared in another way: {detail}. "
        "Choose a new folder for --out, or remove this one."
    )


def _finished(folder: Path, batch: Batch) -> ShardInfo | None:
    """The record of a shard that is there already; refuses one that was made of other text."""
    path = folder / "shards" / f"{batch.number:05d}" / "info.json"
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
    corpus = hashlib.blake2b("".join(info.source for info in infos).encode(), digest_size=16).hexdigest()
    listed = [{"reason": piece.reason, "where": piece.where, "detail": piece.detail} for piece in tally.listed]
    write_text(folder / "dropped.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in listed))
    manifest = Manifest(
        tokenizer=tokenizer.digest,
        corpus=corpus,
        layers=how.layers,
        steps=how.describe(),
        counts=sum((info.counts for info in infos), Counts()),
        dropped=dict(sorted(tally.dropped.items())),
        changed={"control characters": tally.removed} if tally.removed else {},
        shards=tuple(infos),
    )
    manifest.save(folder / "manifest.json")
    return manifest


def _reasons(tally: Tally) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(tally.dropped.items())) or "none"

"""A corpus in several sizes: the same text again and again.

What arrives: a prepared corpus and sizes in millions of tokens. What leaves: a folder for each size, for the time of a
block.
What never happens here: writing into the corpus, or another mixture of long and short documents in another size: rows
of many short documents take longer, whatever lies around them. The smallest size is taken from all over the corpus, and
larger ones are copies of it in a temporary folder, each with pages of its own, as other text would have.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from unmask.core.io.atomic import digest_bytes
from unmask.data.corpus.manifest import Counts, Manifest, ShardInfo, shard_folder

MILLION = 1_000_000


@contextmanager
def grown(data: Path, sizes: Sequence[int]) -> Iterator[list[Path]]:
    """The corpus in these sizes; as it is, if none are given."""
    with tempfile.TemporaryDirectory() as folder:
        each = [grow(data, Path(folder) / str(size), min(sizes) * MILLION, size * MILLION) for size in sizes]
        yield each or [data]


def grow(data: Path, folder: Path, least: int, tokens: int) -> Path:
    """A corpus of about so many tokens: shards of `data` that make up the `least`, spread evenly over it, repeated."""
    manifest, counts = Manifest.load(data), Counts()
    there = len(manifest.shards)
    some = min(max(round(least / manifest.counts.tokens * there), 1), there)
    chosen: list[ShardInfo] = []
    for number in (there * place // some for _ in range(max(round(tokens / least), 1)) for place in range(some)):
        shutil.copytree(shard_folder(data, number), shard_folder(folder, len(chosen)))
        chosen.append(manifest.shards[number])
        counts += manifest.shards[number].counts
    shutil.copy(data / "tokenizer.json", folder)
    if (data / "vectors").is_dir():
        shutil.copytree(data / "vectors", folder / "vectors")
    name = digest_bytes(f"{manifest.corpus} {len(chosen)}".encode())
    replace(manifest, corpus=name, counts=counts, shards=tuple(chosen)).save(folder / "manifest.json")
    return folder

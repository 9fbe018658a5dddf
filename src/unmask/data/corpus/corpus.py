"""A prepared corpus, opened for random access: every token has an address.

The arrays of the shards are memory-mapped.
"""

from __future__ import annotations

import errno
import resource
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.core.errors import CorpusError
from unmask.core.io.atomic import digest_file
from unmask.core.records import Bits, Ids, Ints, UnitFlag, UnitKind
from unmask.data.corpus.manifest import Manifest, ShardInfo, shard_folder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab, with_similar_words


@dataclass(frozen=True)
class Shard:
    """One shard with positions inside it; `base` is the address of its first token."""

    ids: npt.NDArray[Any]
    units: Bits
    documents: Ints
    """The offsets of the documents."""
    base: int

    @cached_property
    def sentences(self) -> npt.NDArray[np.uint32]:
        """The offsets of the sentences."""
        starts = np.flatnonzero(np.asarray(self.units) & UnitFlag.SENTENCE)
        return np.append(starts, len(self.units)).astype(np.uint32)

    @cached_property
    def conversations(self) -> Ints:
        """The numbers of the dialogues among the documents: a turn starts at their first token."""
        found: Ints = np.flatnonzero(np.asarray(self.units[self.documents[:-1]]) & UnitFlag.TURN)
        return found

    @cached_property
    def turns(self) -> Ints:
        """The positions at which turns of dialogues begin."""
        starts: Ints = np.flatnonzero(np.asarray(self.units) & UnitFlag.TURN)
        return starts


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus. Token addresses run over all shards in order."""

    folder: Path
    manifest: Manifest
    shards: tuple[Shard, ...]
    vocab: Vocab

    @staticmethod
    def open(folder: Path) -> Corpus:
        """Open a prepared folder; its tokenizer must be the one of its shards."""
        manifest = Manifest.load(folder)
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
        if tokenizer.digest != manifest.tokenizer:
            raise CorpusError(
                f"{folder}/tokenizer.json is not the tokenizer that these shards were made with (its digest is "
                f"{tokenizer.digest[:8]}, theirs {manifest.tokenizer[:8]}). Put the right file back, or prepare again."
            )
        _allow_open_files(len(manifest.shards))
        base, shards = 0, []
        for number, info in enumerate(manifest.shards):
            shards.append(_open(shard_folder(folder, number), info, base))
            base += info.counts.tokens
        vocab = with_similar_words(tokenizer.vocab, folder / "vectors", manifest.tokenizer)
        if not len(vocab.ordinary):
            raise CorpusError(
                f"The vocabulary of {folder} holds special tokens and no text, so there is nothing to learn from. "
                "A character gets an entry if it comes at least twice and the vocabulary has room for it: prepare more "
                "text, or, if few entries were requested, with a larger --vocab-size."
            )
        return Corpus(folder, manifest, tuple(shards), vocab)

    @property
    def layers(self) -> frozenset[UnitKind]:
        """The unit kinds that this corpus was segmented into."""
        return frozenset(self.manifest.layers)

    @cached_property
    def bases(self) -> Ints:
        """The address of the first token of each shard, and the end."""
        last = self.shards[-1]
        return np.array([*(shard.base for shard in self.shards), last.base + len(last.ids)], dtype=np.int64)

    def gather(self, start: Ints, length: Ints, ids: Ids, bits: Bits, place: Ints) -> None:
        """Copy pieces: `length[i]` tokens from address `start[i]` to position `place[i]` of the two outputs."""
        home = np.searchsorted(self.bases, start, side="right") - 1
        pieces = zip(home.tolist(), start.tolist(), length.tolist(), place.tolist(), strict=True)
        for number, first, size, to in pieces:
            shard = self.shards[number]
            source = slice(first - shard.base, first - shard.base + size)
            ids[to : to + size] = shard.ids[source]
            bits[to : to + size] = shard.units[source]

    def verify(self) -> None:
        """Compare every file with its digest, and report the first that differs."""
        for number, info in enumerate(self.manifest.shards):
            for name, digest in info.files.items():
                path = shard_folder(self.folder, number) / f"{name}.npy"
                if digest_file(path) != digest:
                    raise CorpusError(f"{path} has changed since it was written. Prepare the corpus again.")


def _allow_open_files(shards: int) -> None:
    """Raise the limit of open files: each shard keeps two open, and many systems allow 1,024 per process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * shards + 1024
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _open(folder: Path, info: ShardInfo, base: int) -> Shard:
    try:
        ids, units = (
            np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)) for name in ("ids", "units")
        )
        documents = np.load(folder / "documents.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise CorpusError(
                f"The corpus has more shards than this system lets a process open files. Raise the limit, e.g. with "
                f"ulimit -n 65536, and start again. (The shard {folder} is not damaged.)"
            ) from error
        raise CorpusError(f"The shard {folder} is damaged ({error}). Prepare the corpus again.") from error
    if len(ids) != info.counts.tokens or len(units) != len(ids) or len(documents) != info.counts.documents + 1:
        raise CorpusError(f"The shard {folder} does not fit its manifest. Prepare the corpus again.")
    return Shard(ids, units, documents, base)

"""A part of a prepared corpus as a prepared corpus of its own, for what happens when text is seen again and again.

What arrives: an opened corpus. What leaves: a folder that `unmask pretrain` reads, with the same tokenizer.
What never happens here: a document that is cut, or one that is prepared anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from unmask.core.records import TokenDoc, TokenUnits
from unmask.core.rng import Key, permuted_index
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.manifest import shard_folder
from unmask.data.corpus.shard_worker import write_shard


def cut(corpus: Corpus, tokens: int, out: Path) -> None:
    """Documents from all over the corpus, in a drawn order, until there are enough tokens."""
    docs: list[TokenDoc] = []
    for doc in _drawn(corpus):
        docs.append(doc)
        tokens -= len(doc.ids)
        if tokens <= 0:
            break
    out.mkdir(parents=True, exist_ok=True)
    vocab = corpus.vocab
    info = write_shard(shard_folder(out, 0), docs, (vocab.size, vocab.unk), "cut", 0)
    shutil.copy(corpus.folder / "tokenizer.json", out)
    if (corpus.folder / "vectors").is_dir():
        shutil.copytree(corpus.folder / "vectors", out / "vectors", dirs_exist_ok=True)
    replace(corpus.manifest, counts=info.counts, shards=(info,)).save(out / "manifest.json")
    print(f"{out}: {info.counts.documents:,} documents, {info.counts.tokens:,} tokens")


def _drawn(corpus: Corpus) -> Iterator[TokenDoc]:
    places = [(shard, number) for shard in corpus.shards for number in range(len(shard.documents) - 1)]
    for at in permuted_index(np.arange(len(places)), len(places), Key.of(0, "claims", "cut")).tolist():
        shard, number = places[at]
        part = slice(int(shard.documents[number]), int(shard.documents[number + 1]))
        yield TokenDoc(np.asarray(shard.ids[part]).astype(np.int32), TokenUnits(np.asarray(shard.units[part])))

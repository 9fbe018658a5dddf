"""Rows as the examples of `transformers` join them: every document between its two marks, all in one line, cut evenly.

What arrives: a corpus. What leaves: full rows in which documents go on across borders; the last piece is left out.
"""

from __future__ import annotations

import numpy as np

from unmask.records import Ids
from unmask.shards.corpus import Corpus, Shard
from unmask.tokenize.vocab import Vocab


def joined(corpus: Corpus, length: int) -> Ids:
    """All text of a corpus in rows of this length."""
    line = np.concatenate([_marked(shard, corpus.vocab) for shard in corpus.shards])
    return line[: len(line) // length * length].reshape(-1, length)


def _marked(shard: Shard, vocab: Vocab) -> Ids:
    """The tokens of a shard, with a mark behind and before every document: where two meet, the first one ends first."""
    starts, ends = np.asarray(shard.documents[:-1]), np.asarray(shard.documents[1:])
    ids: Ids = np.insert(
        np.asarray(shard.ids).astype(np.int32), np.concatenate([ends, starts]), _marks(vocab, len(starts))
    )
    return ids


def _marks(vocab: Vocab, documents: int) -> Ids:
    return np.repeat(np.array([vocab.sep, vocab.cls], dtype=np.int32), documents)

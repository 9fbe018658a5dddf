"""Text to learn from and text to be judged by: a corpus cut between two documents.

What arrives: an opened corpus and a share. What leaves: two corpora over the same files.
What never happens here: a document that is in both, or a copy of anything.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unmask.errors import CorpusError
from unmask.shards.corpus import Corpus, Shard

_LEAST = 2
"""Documents in each part: a segment is paired with one from another document."""


def split(corpus: Corpus, share: float) -> tuple[Corpus, Corpus]:
    """The corpus without its last documents, and those: about `share` of all tokens, at least two documents each."""
    tokens, documents = corpus.manifest.counts.tokens, corpus.manifest.counts.documents
    if documents < 2 * _LEAST:
        raise CorpusError(
            f"{corpus.folder} holds {documents} document{'s' * (documents != 1)}, but two to learn from and two to be "
            "judged by are needed. Add documents, or separate those that are there by blank lines."
        )
    at = _border(corpus, round(tokens * (1 - share)))
    return _part(corpus, 0, at), _part(corpus, at, tokens)


def _border(corpus: Corpus, wanted: int) -> int:
    """The start of a document nearest to an address, with enough documents on either side."""
    starts = np.concatenate([shard.documents[:-1] + shard.base for shard in corpus.shards])[_LEAST : 1 - _LEAST]
    return int(starts[np.abs(starts - wanted).argmin()])


def _part(corpus: Corpus, start: int, end: int) -> Corpus:
    shards = [_cut(shard, start, end) for shard in corpus.shards]
    kept = tuple(shard for shard in shards if len(shard.ids))
    documents = sum(len(shard.documents) - 1 for shard in kept)
    counts = replace(corpus.manifest.counts, documents=documents, tokens=end - start)
    return Corpus(corpus.folder, replace(corpus.manifest, counts=counts), kept, corpus.vocab)


def _cut(shard: Shard, start: int, end: int) -> Shard:
    first, last = max(start - shard.base, 0), min(max(end - shard.base, 0), len(shard.ids))
    first = min(first, last)
    inside = (shard.documents >= first) & (shard.documents <= last)
    documents = shard.documents[inside] - first
    return Shard(shard.ids[first:last], shard.units[first:last], documents, shard.base + first)

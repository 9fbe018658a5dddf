"""Held-out text: a corpus split between documents into training and evaluation parts, over the same files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unmask.core.errors import CorpusError
from unmask.core.records import Ints, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard

_MIN_DOCUMENTS = 2
"""The least documents, and dialogues if there are enough, of each part: pairs need two of a kind."""


def split_heldout(corpus: Corpus, heldout_fraction: float) -> tuple[Corpus, Corpus]:
    """The training part, and about `share` of all tokens for evaluation: the last documents of every shard.

    Files are often sorted by subject, so that the end of the whole corpus would not be representative. Each part has at
    least two documents, and two dialogues if there are four. Addresses restart in each part.
    """
    documents = corpus.manifest.counts.documents
    if documents < 2 * _MIN_DOCUMENTS:
        raise CorpusError(
            f"Held-out text needs two documents for training and two for evaluation; {corpus.folder} has {documents}. "
            "Add documents, or separate those that are there by blank lines."
        )
    talks = (
        UnitKind.TURN in corpus.layers
        and sum(len(shard.conversations) for shard in corpus.shards) >= 2 * _MIN_DOCUMENTS
    )
    spread = _cuts_per_shard(corpus, heldout_fraction)
    for cuts in (spread, _cuts_with_dialogues(corpus, spread), _cut_near_end(corpus, heldout_fraction)):
        training = _part(corpus, [(0, cut) for cut in cuts])
        evaluation = _part(corpus, [(cut, len(shard.ids)) for cut, shard in zip(cuts, corpus.shards, strict=True)])
        if all(_has_enough(part, talks) for part in (training, evaluation)):
            break
    return training, evaluation


def _has_enough(part: Corpus, talks: bool) -> bool:
    if part.manifest.counts.documents < _MIN_DOCUMENTS:
        return False
    return not talks or sum(len(shard.conversations) for shard in part.shards) >= _MIN_DOCUMENTS


def _cuts_per_shard(corpus: Corpus, share: float) -> list[int]:
    """The split of each shard. A deficit of one shard, whose documents are long, is added to the next."""
    cuts, seen, held = [], 0, 0
    for shard in corpus.shards:
        size = len(shard.ids)
        seen += size
        cuts.append(_nearest(shard.documents, size - (share * seen - held)))
        held += size - cuts[-1]
    return cuts


def _cuts_with_dialogues(corpus: Corpus, cuts: Sequence[int]) -> list[int]:
    """The same splits, but one of them moved so that both parts have dialogues: for a corpus with few."""
    moved = list(cuts)
    for number, shard in reversed(list(enumerate(corpus.shards))):
        if len(shard.conversations) >= 2 * _MIN_DOCUMENTS:
            first, last = shard.conversations[_MIN_DOCUMENTS], shard.conversations[-_MIN_DOCUMENTS]
            moved[number] = int(np.clip(cuts[number], shard.documents[first], shard.documents[last]))
            break
    return moved


def _cut_near_end(corpus: Corpus, share: float) -> list[int]:
    """One split near the end of the corpus, with enough documents on both sides: for a corpus with few."""
    starts = np.concatenate([shard.documents[:-1] + shard.base for shard in corpus.shards])[
        _MIN_DOCUMENTS : 1 - _MIN_DOCUMENTS
    ]
    at = _nearest(starts, corpus.shards[0].base + corpus.manifest.counts.tokens * (1 - share))
    return [int(np.clip(at - shard.base, 0, len(shard.ids))) for shard in corpus.shards]


def _nearest(borders: Ints, wanted: float) -> int:
    return int(borders[np.abs(borders - wanted).argmin()])


def _part(corpus: Corpus, stretches: Sequence[tuple[int, int]]) -> Corpus:
    """The given part of each shard, over the same files."""
    kept: list[Shard] = []
    base = 0
    for shard, (start, end) in zip(corpus.shards, stretches, strict=True):
        if start < end:
            documents = shard.documents[(shard.documents >= start) & (shard.documents <= end)] - start
            kept.append(Shard(shard.ids[start:end], shard.units[start:end], documents, base))
            base += end - start
    counts = replace(corpus.manifest.counts, documents=sum(len(shard.documents) - 1 for shard in kept), tokens=base)
    return Corpus(corpus.folder, replace(corpus.manifest, counts=counts), tuple(kept), corpus.vocab)

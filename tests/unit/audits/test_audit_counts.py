"""What the measures count, against a loop over rows, words and tokens."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.audits.replacement import TokenShares, WordShares
from unmask.audits.rewriting import source_positions
from unmask.audits.row_checks import RowFill
from unmask.audits.rows import AuditSource, audited_tokens, cloze_spans
from unmask.audits.selection import MaskRate, RunLengths, WholeUnitsCheck
from unmask.core.records import UnitFlag, UnitKind
from unmask.core.rng import Key
from unmask.data.corrupt.masking import MaskTokens, RandomTokens, Replace, ReplaceBy, WholeUnits
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.token_deletion import TokenDeletion
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.pairs import SegmentPairs
from unmask.data.input_formats.row_plan import DynamicMasking

KEY = Key.of(2)
RUNS = WholeUnits(run_lengths=(0.5, 0.3, 0.2))


def batch_of(corpus, corrupt, examples=Packed(DocumentBoundary.ACROSS), length=96):  # noqa: B008
    source = AuditSource.of(corpus, examples, length, DynamicMasking(), KEY)
    return next(source.batches(corrupt, 40))


def words_of(example):
    """The words of each row as lists of positions."""
    for first, last in zip(example.rows[:-1], example.rows[1:], strict=True):
        word = []
        for position in range(first, last):
            if word and example.units.bits[position] & UnitFlag.WORD:
                yield word
                word = []
            word.append(position)
        yield word


def test_rate_counts_what_is_asked_against_the_budget(corpus):
    batch = batch_of(corpus, MaskTokens(RandomTokens(0.2)))
    tokens, chosen, wanted, gap = MaskRate(RandomTokens(0.2)).count(batch)
    lengths = batch.example.lengths
    assert (tokens, chosen) == (lengths.sum(), len(audited_tokens(batch).positions))
    assert wanted == sum(max(1, round(0.2 * length)) for length in lengths)
    assert gap == 0


@pytest.mark.parametrize("select", [RandomTokens(), WholeUnits(), RUNS])
def test_half_masked_words_are_those_with_some_but_not_all_tokens_chosen(select, corpus):
    batch = batch_of(corpus, MaskTokens(select))
    chosen = set(audited_tokens(batch).positions.tolist())
    hidden = [(sum(token in chosen for token in word), len(word)) for word in words_of(batch.example)]
    touched, half = WholeUnitsCheck(UnitKind.WORD, True).count(batch)
    assert touched == sum(count > 0 for count, _ in hidden)
    assert half == sum(0 < count < size for count, size in hidden)
    assert (half > 0) == isinstance(select, RandomTokens)


def test_runs_are_counted_in_words(corpus):
    batch = batch_of(corpus, MaskTokens(RUNS), length=256)
    spans, starts = cloze_spans(batch), [word[0] for word in words_of(batch.example)]
    counts = np.zeros(4)
    for start, end in zip(spans.start, spans.end, strict=True):
        counts[sum(start <= first < end for first in starts) - 1] += 1
    assert RunLengths(RUNS).count(batch).tolist() == counts.tolist()
    assert counts[3] == 0


def test_shares_are_read_from_what_is_shown(corpus):
    batch = batch_of(corpus, MaskTokens(RandomTokens()))
    tokens, masked, kept, hits, squares = TokenShares(0.8, 0.1, 0.1).count(batch)
    found = audited_tokens(batch)
    pairs = list(zip(found.inputs.tolist(), found.targets.tolist(), strict=True))
    assert masked == sum(shown == batch.vocab.mask for shown, _ in pairs)
    assert kept == sum(shown == answer for shown, answer in pairs)
    assert (tokens, squares) == (len(pairs), len(pairs))
    assert hits == pytest.approx(len(pairs) / len(batch.vocab.ordinary))


def test_a_share_by_span_counts_as_many_draws_as_there_are_spans(corpus):
    batch = batch_of(corpus, MaskTokens(RUNS, Replace(mask=1.0, per=ReplaceBy.SPAN)))
    squares = TokenShares(1.0, 0.0, 0.0, ReplaceBy.SPAN).count(batch)[-1]
    assert squares == (cloze_spans(batch).lengths ** 2).sum()


def test_similar_words_are_those_that_the_table_lists(corpus):
    show = Replace(similar=0.7, random=0.2, keep=0.1, per=ReplaceBy.WORD)
    batch = batch_of(corpus, MaskTokens(WholeUnits(), show), length=256)
    table, found = batch.vocab.similar_words, audited_tokens(batch)
    place = {position: number for number, position in enumerate(found.positions.tolist())}
    similar = kept = covered = words = 0
    for word in words_of(batch.example):
        if word[0] not in place:
            continue
        truth, shown = ([side[place[token]] for token in word] for side in (found.targets, found.inputs))
        number = table.words.find(np.array(truth, np.int32), np.array([0]))[0]
        near = table.neighbours[table.rows[number] : table.rows[number + 1]] if number >= 0 else []
        words += 1
        covered += len(near) > 0
        kept += truth == shown
        similar += any(table.words.word(int(other)).tolist() == shown for other in near)
    counts = WordShares(show).count(batch)
    assert counts[[0, 1, 2, 6, 8]].tolist() == [0, similar, kept, covered, words]
    assert similar > 10


@pytest.mark.parametrize(
    "examples",
    [Packed(DocumentBoundary.ACROSS), Packed(DocumentBoundary.NEVER), Packed(DocumentBoundary.BORDERS), SegmentPairs()],
)
def test_documents_of_a_row_are_those_that_its_text_lies_in(examples, corpus):
    source = AuditSource.of(corpus, examples, 200, DynamicMasking(), KEY)
    batch = next(source.batches(MaskTokens(), 40))
    rows, _ = source.visits(np.arange(40))
    starts = np.concatenate([shard.base + shard.documents[:-1] for shard in corpus.shards])
    for row, documents in zip(rows, batch.num_documents, strict=True):
        pieces = range(source.plan.rows[row], source.plan.rows[row + 1])
        tokens = np.concatenate([source.plan.start[i] + np.arange(source.plan.length[i]) for i in pieces])
        assert documents == len(np.unique(np.searchsorted(starts, tokens, side="right")))
    assert RowFill(200).count(batch)[:3].tolist() == [40, batch.example.lengths.sum(), batch.num_documents.sum()]


@pytest.mark.parametrize("corrupt", [TokenDeletion(), PermuteSentences()])
def test_sources_say_where_a_shown_token_stood(corrupt, corpus):
    batch = batch_of(corpus, corrupt)
    source, shown = source_positions(batch, corrupt), batch.instance.inputs.ids
    text = source >= 0
    assert (shown[text] == batch.example.ids[source[text]]).all()
    assert np.isin(shown[~text], (batch.vocab.cls, batch.vocab.sep)).all()

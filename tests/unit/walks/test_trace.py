"""A trace tells what a corruption did: nothing in it may contradict the corruption's own output."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.core.records import Cloze, DecoderTarget, PermutedTarget, RowBatch, TokenUnits, UnitFlag
from unmask.core.rng import Key
from unmask.data.corrupt.compose import NoiseSequence
from unmask.data.corrupt.document_rotation import DocumentRotation
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.vocab import Vocab
from unmask.tasks.presets import preset, presets
from unmask.walks.trace import TokenFate, trace

CLS, SEP, MASK, FIRST, SIZE = 1, 2, 3, 10, 400
WORDS = [(number, number + 1) for number in range(FIRST, 300, 2)]
TABLE = SimilarWords.of(WORDS, [[(place + 1) % len(WORDS), (place + 2) % len(WORDS)] for place in range(len(WORDS))])
VOCAB = Vocab(
    SIZE, CLS, SEP, MASK, 0, 4, np.arange(FIRST, 350, dtype=np.int32), np.arange(399, 360, -1, dtype=np.int32), TABLE
)


def make_row(words: int) -> RowBatch:
    """[CLS], words of two tokens in sentences of four words, [SEP]."""
    ids = np.array([CLS, *np.ravel(WORDS[:words]), SEP], dtype=np.int32)
    bits = np.zeros(len(ids), dtype=np.uint8)
    bits[1::2] = UnitFlag.WORD
    bits[1::8] = UnitFlag.BORDER
    bits[[0, -1]] = UnitFlag.BORDER
    fixed = np.isin(ids, [CLS, SEP])
    zeros = np.zeros(len(ids))
    return RowBatch(
        ids, zeros.astype(np.uint8), zeros.astype(np.int32), fixed, TokenUnits(bits), np.array([0, len(ids)])
    )


def key_of(seed: int) -> Key:
    return Key.of(seed, "trace").fold_in(np.zeros(1, dtype=np.int64))


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from([found.name for found in presets()]), words=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_the_last_step_is_what_the_network_sees_and_nothing_is_lost(name, words, seed):
    corrupt, row, key = preset(name).corruption, make_row(words), key_of(seed)
    instance = corrupt(row, VOCAB, key)
    last = trace(corrupt, row, VOCAB, key)[-1]
    assert [place.id for place in last.positions] == instance.inputs.ids.tolist()
    hidden = [at for span in last.selected_spans for at in span.origins]
    shown = [at for place, at in enumerate(last.origins) if at >= 0 and not last.positions[place].group]
    assert Counter(hidden + shown) == Counter(range(len(row.ids)))
    for place, origin in zip(last.positions, last.origins, strict=True):
        assert (origin == -1) == (
            place.fate in (TokenFate.MASK, TokenFate.RANDOM, TokenFate.SIMILAR, TokenFate.SENTINEL)
        )
        if origin >= 0:
            assert place.id == row.ids[origin]
            assert (place.fate is TokenFate.SPECIAL) == bool(row.protected[origin])


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(["token", "word", "ngram", "span", "similar"]), seed=st.integers(0, 10**6))
def test_the_fates_of_a_cloze_follow_from_its_ids(name, seed):
    corrupt, row, key = preset(name).corruption, make_row(30), key_of(seed)
    cloze = corrupt(row, VOCAB, key).targets[0]
    assert isinstance(cloze, Cloze)
    step = trace(corrupt, row, VOCAB, key)[0]
    assert [at for at, place in enumerate(step.positions) if place.group] == cloze.positions.tolist()
    for at, answer in zip(cloze.positions.tolist(), cloze.answers.tolist(), strict=True):
        place = step.positions[at]
        assert (place.fate is TokenFate.MASK) == (place.id == MASK)
        if place.fate is TokenFate.KEPT:
            assert place.id == answer
    assert step.is_in_place


def test_similar_words_are_neighbours_and_random_ones_are_not():
    corrupt, row = preset("similar").corruption, make_row(40)
    seen = Counter()
    for seed in range(40):
        step = trace(corrupt, row, VOCAB, key_of(seed))[0]
        for at in range(1, len(row.ids) - 1, 2):
            fates = {step.positions[at].fate, step.positions[at + 1].fate}
            seen.update(fates)
            shift = (step.positions[at].id - int(row.ids[at])) % (2 * len(WORDS))
            if fates == {TokenFate.SIMILAR}:
                assert shift in (2, 4)
            if fates == {TokenFate.RANDOM}:
                assert shift not in (2, 4)
    assert seen[TokenFate.SIMILAR] > 4 * seen[TokenFate.RANDOM] > 0
    assert seen[TokenFate.MASK] == 0


def test_an_empty_table_gives_no_similar_words():
    bare = replace(VOCAB, similar_words=SimilarWords.of([], []))
    step = trace(preset("similar").corruption, make_row(40), bare, key_of(0))[0]
    assert TokenFate.SIMILAR not in {place.fate for place in step.positions}


def test_moved_tokens_are_named_and_nothing_else_is():
    row = make_row(12)
    for seed in range(10):
        for corrupt in (DocumentRotation(), PermuteSentences()):
            step = trace(corrupt, row, VOCAB, key_of(seed))[0]
            moved = {at for at, place in enumerate(step.positions) if place.fate is TokenFate.MOVED}
            assert moved == {at for at, origin in enumerate(step.origins) if at != origin}
            assert not step.selected_spans
            assert step.is_in_place == (not moved)


@pytest.mark.parametrize(
    "steps",
    [
        (PermuteSentences(), TextInfilling()),
        (TextInfilling(), PermuteSentences()),
        (TokenDeletion(), DocumentRotation(), TextInfilling()),
    ],
)
def test_several_steps_are_traced_back_to_the_original_row(steps):
    row, corrupt = make_row(24), NoiseSequence(steps)
    for seed in range(10):
        instance = corrupt(row, VOCAB, key_of(seed))
        traced = trace(corrupt, row, VOCAB, key_of(seed))
        assert len(traced) == len(steps)
        assert [place.id for place in traced[-1].positions] == instance.inputs.ids.tolist()
        for place, origin in zip(traced[-1].positions, traced[-1].origins, strict=True):
            assert place.id == (MASK if origin == -1 else row.ids[origin])
            assert (place.fate is TokenFate.MASK) == (origin == -1)


def test_sentinels_stand_for_their_spans_and_orders_for_their_targets():
    row = make_row(40)
    for seed in range(10):
        instance = preset("t5").corruption(row, VOCAB, key_of(seed))
        target = instance.targets[0]
        assert isinstance(target, DecoderTarget)
        step = trace(preset("t5").corruption, row, VOCAB, key_of(seed))[0]
        written = [int(row.ids[at]) for span in step.selected_spans for at in span.origins]
        assert written == [token for token in target.ids.tolist() if token not in (*VOCAB.sentinels.tolist(), SEP)]
        assert all(len(span.positions) == 1 for span in step.selected_spans)
        order = preset("xlnet").corruption(row, VOCAB, key_of(seed)).targets[0]
        assert isinstance(order, PermutedTarget)
        step = trace(preset("xlnet").corruption, row, VOCAB, key_of(seed))[0]
        assert [at for span in step.selected_spans for at in span.positions] == order.positions.tolist()

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.data.corrupt.compose import NoiseSequence
from unmask.data.corrupt.document_rotation import DocumentRotation
from unmask.data.corrupt.row_ops import unit_starts
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion

STEPS = st.lists(
    st.sampled_from([TextInfilling(), TokenDeletion(0.3), PermuteSentences(), DocumentRotation()]),
    min_size=1,
    max_size=4,
)


@given(data=st.data(), steps=STEPS)
def test_laws_of_any_chain(data, steps, examples, laws):
    laws(NoiseSequence(tuple(steps)), data.draw(examples))


@given(data=st.data(), steps=STEPS)
def test_the_example_left_behind_is_the_same_for_a_row_alone(data, steps, examples, vocab, keys, alone):
    """Units too, because a later step reads them."""
    example = data.draw(examples)
    key = keys(len(example))
    whole = NoiseSequence(tuple(steps)).apply(example, vocab, key)
    assert (whole.protected == np.isin(whole.ids, (vocab.cls, vocab.sep))).all()
    for row in range(len(example)):
        single = NoiseSequence(tuple(steps)).apply(alone(example, row), vocab, type(key)(key.state[row : row + 1]))
        here = alone(whole, row)
        assert single.ids.tolist() == here.ids.tolist()
        assert single.units.bits.tolist() == here.units.bits.tolist()
        assert single.facts["next"].tolist() == here.facts["next"].tolist()


def test_steps_follow_one_another(plain, vocab, keys):
    """Sentences are moved first, then words are hidden in the moved text."""
    key, example = keys(1), plain(1, 12, sentences=(0, 4, 8))
    moved = PermuteSentences().apply(example, vocab, key.fold_in("step", 0))
    hidden = TextInfilling(rate=0.2).apply(moved, vocab, key.fold_in("step", 1))
    both = NoiseSequence((PermuteSentences(), TextInfilling(rate=0.2)))
    assert both(example, vocab, key).inputs.ids.tolist() == hidden.ids.tolist()
    assert both.required_units == {UnitKind.SENTENCE, UnitKind.WORD}


def test_two_equal_steps_draw_differently(plain, vocab, keys):
    rows = 400
    inputs = NoiseSequence((DocumentRotation(), DocumentRotation()))(plain(rows, 4), vocab, keys(rows)).inputs
    shift = inputs.ids.reshape(rows, 6)[:, 1] - 10
    assert set(shift.tolist()) == {0, 1, 2, 3}  # twice the same shift would leave only even ones


def test_moved_sentences_stay_sentences(plain, vocab, keys):
    example = plain(5, 12, sentences=(0, 4, 8))
    moved = NoiseSequence((PermuteSentences(), PermuteSentences())).apply(example, vocab, keys(5))
    assert unit_starts(moved, UnitKind.SENTENCE).sum() == unit_starts(example, UnitKind.SENTENCE).sum()


def test_refusals():
    with pytest.raises(RecipeError, match="at least one step"):
        NoiseSequence(())
    with pytest.raises(RecipeError, match="found SpanCorruption"):
        NoiseSequence((SpanCorruption(),))

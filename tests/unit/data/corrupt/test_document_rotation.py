from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.records import TokenUnits, UnitKind
from unmask.data.corrupt.document_rotation import DocumentRotation
from unmask.data.corrupt.row_ops import segment_starts, unit_starts


@given(data=st.data())
def test_laws_and_each_stretch_is_a_cyclic_shift(data, examples, laws):
    example = data.draw(examples)
    inputs = laws(DocumentRotation(), example).inputs
    assert (inputs.ids[example.protected] == example.ids[example.protected]).all()
    for first, last in pairwise([*np.flatnonzero(segment_starts(example)), len(example.ids)]):
        text, seen = example.ids[first:last].tolist(), inputs.ids[first:last].tolist()
        assert seen in [text[shift:] + text[:shift] for shift in range(len(text))]


def test_the_seam_is_a_sentence_border(plain, vocab, keys):
    """So that a later step does not take the end and the beginning of the text for one sentence."""
    example = plain(20, 5)
    bare = replace(example, units=TokenUnits(np.where(example.protected, example.units.bits, 0).astype(np.uint8)))
    turned = DocumentRotation().apply(bare, vocab, keys(20))
    starts = unit_starts(turned, UnitKind.SENTENCE).reshape(20, 7)
    for ids, begins in zip(turned.ids.reshape(20, 7).tolist(), starts.tolist(), strict=True):
        assert [i for i, first in zip(ids, begins, strict=True) if first] == [
            i for place, i in enumerate(ids) if place in (0, 1, 6) or i == 10
        ]


def test_every_token_comes_first_equally_often(plain, vocab, keys):
    inputs = DocumentRotation()(plain(5000, 5), vocab, keys(5000)).inputs
    share = np.bincount(inputs.ids.reshape(5000, 7)[:, 1] - 10, minlength=5) / 5000
    assert np.abs(share - 0.2).max() < 0.02

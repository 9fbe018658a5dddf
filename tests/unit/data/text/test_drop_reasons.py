"""Reasons as they are counted: one piece or several."""

from __future__ import annotations

import pytest

from unmask.data.text.drop_reasons import DropReason, format_drop_count


@pytest.mark.parametrize(
    ("number", "reason", "said"),
    [
        (1, DropReason.DUPLICATE, "1 exact duplicate"),
        (4, DropReason.DUPLICATE, "4 exact duplicates"),
        (1200, "near-empty document", "1,200 near-empty documents"),
        (2, DropReason.BAD_ENTITY, "2 unusable entities"),
        (2, DropReason.UNKNOWN_KIND, "2 folders with other files"),
        (2, "document without tokens", "2 documents without tokens"),
        (3, DropReason.BROKEN_JSON, "3 broken JSON"),
        (3, DropReason.OTHER_ENCODING, "3 not UTF-8"),
        (2, "a reason of another version", "2 a reason of another version"),
    ],
)
def test_several_pieces_are_several_in_words(number, reason, said):
    assert format_drop_count(number, reason) == said


@pytest.mark.parametrize("reason", DropReason)
def test_one_piece_has_the_word_of_the_manifest(reason):
    assert format_drop_count(1, reason) == f"1 {reason.value}"

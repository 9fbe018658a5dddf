"""Tokens as running text: whole characters where all of their bytes are there."""

import pytest

from unmask.reports.text.walk_labels import join_tokens


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["模", "##型"], "模型"),
        (["<E7>", "<88>", "<B1>"], "爱"),
        (["模<E5>", "<9E>", "<8B>"], "模型"),
        (["<91>", "<E7>", "<88>", "<B1>", "<F0>", "<9F>"], "<91>爱<F0><9F>"),
        (["<20>"], "<20>"),
        (["<E2>", "<80>", "<8D>"], "<E2><80><8D>"),  # a joiner, which cannot be seen
        (["<s>", "<mask>", " the", " cat"], "<s><mask> the cat"),
    ],
)
def test_bytes_become_characters_again(tokens, text):
    assert join_tokens(tokens) == text

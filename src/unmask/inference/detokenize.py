"""Ids that a network wrote, as text for a reader.

What arrives: ids. What leaves: text without special tokens, and without the spaces that a vocabulary of single
characters puts between them.
What never happens here: a guess at capital letters. A tokenizer that folds them cannot give them back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from unmask.data.tokenize.tokenizer import Tokenizer

_WIDE = "\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff“”‘’—…"
"""Characters of Chinese and Japanese and their punctuation, between which nobody writes a space."""
_BESIDE_WIDE = re.compile(f"(?<=[{_WIDE}]) +| +(?=[{_WIDE}])")


def decode(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of some ids."""
    text: str = tokenizer.pipeline.decode(list(ids), skip_special_tokens=True)
    return _BESIDE_WIDE.sub("", text).strip()

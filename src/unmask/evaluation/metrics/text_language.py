"""Is it Chinese? Several scores cut Chinese text into characters and other text into words.

What arrives: texts. What leaves: their language, as far as scores care.
What never happens here: telling other languages apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Chinese characters, as the inside of a character class."""
_CHARACTER = re.compile(f"[{HAN}]")
_WORD = re.compile(rf"[^\W\d_{HAN}]+")


class Language(Enum):
    """How a text is cut."""

    CHINESE = "Chinese"
    OTHER = "other"


def language_of(texts: Iterable[str]) -> Language:
    """Chinese if there are more Chinese characters than words of other letters in all texts together."""
    balance = sum(len(_CHARACTER.findall(text)) - len(_WORD.findall(text)) for text in texts)
    return Language.CHINESE if balance > 0 else Language.OTHER

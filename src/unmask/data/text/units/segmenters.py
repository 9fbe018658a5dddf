"""Chinese word segmenters: rjieba and jieba, with user dictionaries.

The words of a text, joined, are the text again. `words.py` uses them only for Chinese. Another segmenter is a class
with `name`, `version` and `cut`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Protocol

from unmask.core.errors import InputError
from unmask.data.text.files.word_lists import UserWord


class Segmenter(Protocol):
    """Splits text into words, which joined are the text again, whitespace included."""

    @property
    def name(self) -> str:
        """Its name in the manifest."""

    @property
    def version(self) -> str:
        """Its version, with everything else that changes its output."""

    def cut(self, text: str) -> list[str]:
        """The words of a text."""


class PosTagger(Segmenter, Protocol):
    """A segmenter with part-of-speech tags."""

    def tag(self, text: str) -> list[tuple[str, str]]:
        """The words of a text with their tags: nr for people, ns for places, nt for organisations, ..."""


@dataclass(frozen=True, slots=True)
class RustJieba:
    """jieba in Rust (rjieba): the same dictionary and output as jieba, many times faster."""

    words: tuple[UserWord, ...] = ()
    """The user dictionary, in addition to the default one."""
    _jieba: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        import rjieba

        jieba = rjieba.Jieba() if self.words else rjieba
        for entry in self.words:
            jieba.add_word(entry.word, entry.frequency, entry.tag)
        object.__setattr__(self, "_jieba", jieba)

    def __reduce__(self) -> tuple[type[RustJieba], tuple[tuple[UserWord, ...]]]:
        return RustJieba, (self.words,)  # another process builds its own dictionary

    @property
    def name(self) -> str:
        """Its name."""
        return "rjieba"

    @property
    def version(self) -> str:
        """Its version and a digest of the user's words."""
        return _version("rjieba", self.words)

    def cut(self, text: str) -> list[str]:
        """The words of a text."""
        words: list[str] = self._jieba.cut(text)
        return words

    def tag(self, text: str) -> list[tuple[str, str]]:
        """The words of a text with their tags."""
        tagged: list[tuple[str, str]] = self._jieba.tag(text)
        return tagged


@dataclass(frozen=True, slots=True)
class PythonJieba:
    """jieba itself, for machines without a build of rjieba."""

    words: tuple[UserWord, ...] = ()
    _cut: Callable[[str], list[str]] = field(init=False, repr=False, compare=False)
    _tag: Callable[[str], list[Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        import jieba
        import jieba.posseg

        jieba.setLogLevel(logging.WARNING)
        tokenizer = jieba.Tokenizer()
        for entry in self.words:
            tokenizer.add_word(entry.word, entry.frequency, entry.tag)
        object.__setattr__(self, "_cut", tokenizer.lcut)
        object.__setattr__(self, "_tag", jieba.posseg.POSTokenizer(tokenizer).lcut)

    def __reduce__(self) -> tuple[type[PythonJieba], tuple[tuple[UserWord, ...]]]:
        return PythonJieba, (self.words,)

    @property
    def name(self) -> str:
        """Its name."""
        return "jieba"

    @property
    def version(self) -> str:
        """Its version and a digest of the user's words."""
        return _version("jieba", self.words)

    def cut(self, text: str) -> list[str]:
        """The words of a text."""
        return self._cut(text)

    def tag(self, text: str) -> list[tuple[str, str]]:
        """The words of a text with their tags."""
        return [(pair.word, pair.flag) for pair in self._tag(text)]


def default_segmenter(words: tuple[UserWord, ...] = ()) -> PosTagger:
    """The fastest installed segmenter."""
    if find_spec("rjieba"):
        return RustJieba(words)
    if find_spec("jieba"):
        return PythonJieba(words)
    raise InputError("Chinese text needs a segmenter and none is installed. Run: pip install rjieba (or jieba).")


def _version(package: str, words: tuple[UserWord, ...]) -> str:
    if not words:
        return version(package)
    digest = hashlib.blake2b(repr(words).encode(), digest_size=8).hexdigest()
    return f"{version(package)} with {len(words)} user words {digest}"

"""Word lists: a user dictionary for the segmenter, and terms to be found as entities.

`#` begins a comment line, and blank lines are skipped. A line that cannot be read is refused with its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.encoding import numbered_lines


@dataclass(frozen=True, slots=True)
class UserWord:
    """A word for the segmenter. Without a frequency, it gets one with which it is found."""

    word: str
    frequency: int | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class TermEntry:
    """A term and its label."""

    text: str
    label: str


def read_words(path: Path) -> tuple[UserWord, ...]:
    """A word a line, then optionally its frequency and its tag, separated by spaces: `云计算 5000 n`."""
    return tuple(_user_word(path, number, line) for number, line in _entries(path))


def read_terms(path: Path, label: str = "term") -> tuple[TermEntry, ...]:
    """A term a line, then optionally a tab and its label. The first label of a term counts."""
    terms: dict[str, TermEntry] = {}
    for number, line in _entries(path):
        text, tab, own = (part.strip() for part in line.partition("\t"))
        if not text or (tab and not own) or "\t" in own:
            raise _bad_line_error(path, number, line, "a term, or a term, a tab and a label")
        terms.setdefault(text, TermEntry(text, own or label))
    return tuple(terms.values())


def _user_word(path: Path, number: int, line: str) -> UserWord:
    match line.split():
        case [word]:
            return UserWord(word)
        case [word, frequency] if frequency.isdecimal() and int(frequency):
            return UserWord(word, int(frequency))
        case [word, tag] if tag.isalpha():
            return UserWord(word, None, tag)
        case [word, frequency, tag] if frequency.isdecimal() and int(frequency):
            return UserWord(word, int(frequency), tag)
    raise _bad_line_error(path, number, line, "a word, then optionally a frequency (a positive whole number) and a tag")


def _entries(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(path, "dictionary"):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _bad_line_error(path: Path, number: int, line: str, needed: str) -> InputError:
    return InputError(f"{path}:{number}: a line must hold {needed}; this one is {line.strip()!r}.")

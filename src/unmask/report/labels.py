"""The words, letters and colours that a walk is shown with, the same in the terminal and on the page.

What arrives: a fate, a stage, tokens. What leaves: how each of them is written.
What never happens here: layout.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from unmask.walk.trace import Fate

_WIDE = ("W", "F")
_CLOSING = ("Po", "Pe", "Pf")
_BYTES = re.compile(r"(?:<[0-9A-F]{2}>)+")
"""Parts of characters, as byte-level tokens are shown."""


class Stage(Enum):
    """The stages of a walk: what each is called in English and in Chinese."""

    TEXT = ("text", "文本")
    WORDS = ("words", "词")
    TOKENS = ("tokens", "词元")
    EXAMPLE = ("example", "样本")
    SELECTION = ("selection", "选择")
    INPUT = ("input", "输入")
    TARGETS = ("targets", "目标")
    SIGHT = ("who sees whom", "谁看得见谁")
    RESTORED = ("restored", "还原")

    @property
    def number(self) -> int:
        """Its place on the way, from 1."""
        return list(Stage).index(self) + 1


class Mark(NamedTuple):
    """How a fate is marked: a letter for text without colour, a raised letter, a terminal style, and words."""

    letter: str
    raised: str
    style: str
    words: str
    term: str


MARKS = {
    Fate.SHOWN: Mark("", "", "", "as it was", "原样"),
    Fate.SPECIAL: Mark("", "", "dim", "special token, never touched", "特殊符号"),
    Fate.MASK: Mark("M", "", "bold magenta", "masked", "遮盖"),
    Fate.RANDOM: Mark("R", "ᴿ", "bold red", "random instead", "随机"),
    Fate.KEPT: Mark("K", "ᴷ", "bold green", "kept, but asked for", "保留"),
    Fate.SIMILAR: Mark("S", "ˢ", "bold cyan", "similar word instead", "近义词"),
    Fate.SENTINEL: Mark("#", "", "bold blue", "sentinel for a removed span", "哨兵"),
    Fate.MOVED: Mark("~", "", "yellow", "from elsewhere in the row", "移位"),
    Fate.ORDERED: Mark("?", "", "bold magenta", "asked for, in a drawn order", "按抽出的顺序"),
}


def spelled(tokens: Sequence[str]) -> str:
    """Tokens as running text: pieces joined, spaces only where a script has them, whole characters for their bytes."""
    return _BYTES.sub(_character, "".join(gap + written for gap, written in pieces(tokens)))


def pieces(tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each token as it is written in running text, with the space that goes before it."""
    before = ""
    for token in tokens:
        written = token.removeprefix("##").replace("▁", " ").strip() or token
        closing = len(written) == 1 and unicodedata.category(written) in _CLOSING
        specials = _is_special(before) and _is_special(written)
        glued = token.startswith("##") or closing or specials or not before or _is_wide(before, written)
        glued |= _cut_inside(before, token)
        yield "" if glued else " ", written
        before = written


def span_of(places: Sequence[int]) -> str:
    """Neighbouring places as a range."""
    return str(places[0]) if len(places) == 1 else f"{places[0]}–{places[-1]}"


def _character(found: re.Match[str]) -> str:
    """The characters that some bytes spell. Bytes that spell nothing, or nothing visible, stay as they are."""
    raw = bytes.fromhex(found[0].replace("<", "").replace(">", ""))
    text = raw.decode("utf-8", "surrogateescape")
    return found[0] if text.isspace() else "".join(c if c.isprintable() else _as_bytes(c) for c in text)


def _as_bytes(character: str) -> str:
    return "".join(f"<{byte:02X}>" for byte in character.encode("utf-8", "surrogateescape"))


def _cut_inside(before: str, token: str) -> bool:
    """Whether a character was cut in two between neighbours."""
    return _BYTES.fullmatch(before[-4:]) is not None and _BYTES.match(token) is not None


def _is_special(token: str) -> bool:
    return (token[:1], token[-1:]) in (("[", "]"), ("<", ">")) and len(token) > 2


def _is_wide(before: str, after: str) -> bool:
    """Whether one of two neighbours is written in a script without spaces."""
    return any(unicodedata.east_asian_width(character) in _WIDE for character in (before[-1], after[0]))


def shortened(token: str, longest: int) -> str:
    """A token that fits a narrow place."""
    return token if len(token) <= longest else token[: longest - 1] + "…"

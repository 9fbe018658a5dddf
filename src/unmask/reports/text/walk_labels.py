"""Names, letters and styles of a walk, and tokens as running text, for the terminal and the page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from unmask.walks.trace import TokenFate

_WIDE = ("W", "F")
_CLOSING = ("Po", "Pe", "Pf")
_BYTES = re.compile(r"(?:<[0-9A-F]{2}>)+")
"""Parts of characters, as shown for byte-level tokens."""


class WalkStage(Enum):
    """The stages of a walk, with their English and Chinese names."""

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
        """The number of the stage, from 1."""
        return list(WalkStage).index(self) + 1


class FateMark(NamedTuple):
    """The mark of a fate: a letter, a superscript, a terminal style, and its names."""

    letter: str
    superscript: str
    style: str
    description: str
    term: str


FATE_MARKS = {
    TokenFate.SHOWN: FateMark("", "", "", "as it was", "原样"),
    TokenFate.SPECIAL: FateMark("", "", "dim", "special token, never touched", "特殊符号"),
    TokenFate.MASK: FateMark("M", "", "bold magenta", "masked", "遮盖"),
    TokenFate.RANDOM: FateMark("R", "ᴿ", "bold red", "random instead", "随机"),
    TokenFate.KEPT: FateMark("K", "ᴷ", "bold green", "kept, but asked for", "保留"),
    TokenFate.SIMILAR: FateMark("S", "ˢ", "bold cyan", "similar word instead", "近义词"),
    TokenFate.SENTINEL: FateMark("#", "", "bold blue", "sentinel for a removed span", "哨兵"),
    TokenFate.MOVED: FateMark("~", "", "yellow", "from elsewhere in the row", "移位"),
    TokenFate.ORDERED: FateMark("?", "", "bold magenta", "asked for, in a drawn order", "按抽出的顺序"),
}


def join_tokens(tokens: Sequence[str]) -> str:
    """Tokens as running text: pieces joined, spaces only where the script has them, bytes decoded."""
    return _BYTES.sub(_character, "".join(gap + written for gap, written in spaced_tokens(tokens)))


def spaced_tokens(tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each token as running text, with the space before it."""
    before = ""
    for token in tokens:
        written = token.removeprefix("##").replace("▁", " ").strip() or token
        closing = len(written) == 1 and unicodedata.category(written) in _CLOSING
        specials = _is_special(before) and _is_special(written)
        glued = token.startswith("##") or closing or specials or not before or _is_wide(before, written)
        glued |= _cut_inside(before, token)
        yield "" if glued else " ", written
        before = written


def position_range(positions: Sequence[int]) -> str:
    """Neighbouring positions as a range."""
    return str(positions[0]) if len(positions) == 1 else f"{positions[0]}–{positions[-1]}"


def _character(found: re.Match[str]) -> str:
    """The characters of some bytes; undecodable or invisible bytes are unchanged."""
    raw = bytes.fromhex(found[0].replace("<", "").replace(">", ""))
    text = raw.decode("utf-8", "surrogateescape")
    return found[0] if text.isspace() else "".join(c if c.isprintable() else _as_bytes(c) for c in text)


def _as_bytes(character: str) -> str:
    return "".join(f"<{byte:02X}>" for byte in character.encode("utf-8", "surrogateescape"))


def _cut_inside(before: str, token: str) -> bool:
    """Whether two tokens contain parts of the same character."""
    return _BYTES.fullmatch(before[-4:]) is not None and _BYTES.match(token) is not None


def _is_special(token: str) -> bool:
    return (token[:1], token[-1:]) in (("[", "]"), ("<", ">")) and len(token) > 2


def _is_wide(before: str, after: str) -> bool:
    """Whether one of two neighbours is in a script without spaces."""
    return any(unicodedata.east_asian_width(character) in _WIDE for character in (before[-1], after[0]))


def shorten_token(token: str, longest: int) -> str:
    """A token, truncated to a maximum length."""
    return token if len(token) <= longest else token[: longest - 1] + "…"

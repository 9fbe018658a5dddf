"""Safe splits: positions at which a text can be split without changing its tokens.

The kind of split is derived from a `tokenizer.json`; a pipeline that is not recognized is never split, which is slow
and correct. The proofs:

`AROUND_SEPARATORS`: the normalizer works character by character, and the pre-tokenizer makes some characters words of
their own (punctuation, CJK) or drops them (whitespace). No token crosses such a character, so the text can be split on
both sides of it. `isolates_char` tests each character with the pipeline itself. Characters that decompose into
combining marks are excluded, because reordering of marks could cross a split.

`AROUND_DROPPED`: the same for a normalizer that may *compose* characters (NFC, NFKC). Only dropped characters are safe;
whitespace composes with nothing.

`BEFORE_SPACES`: a plain space between two visible characters always begins a new pre-token under GPT-2's pattern and
under a splitting Metaspace, in any context; and a part that begins with a space gets no prefix.
"""

from __future__ import annotations

import unicodedata
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Pipeline

from unmask.core.records import Bools, Ints
from unmask.data.tokenize.special_tokens import pipeline_steps

CodePoints: TypeAlias = npt.NDArray[np.uint32]
"""A text as code points, one number a character."""


class SafeSplit(Enum):
    """The kinds of safe split."""

    AROUND_SEPARATORS = "around separators"
    AROUND_DROPPED = "around dropped characters"
    BEFORE_SPACES = "before single spaces"
    NOWHERE = "nowhere"


_BY_CHARACTER = {"BertNormalizer", "Lowercase"}
_COMPOSING = {"NFC", "NFKC", "NFD", "NFKD", "Lowercase"}
_WHITESPACE = {"type": "WhitespaceSplit"}
_CHARACTER_SPLIT = {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": False}
_SPACES = np.zeros(0x3001, dtype=np.bool_)
_SPACES[[point for point in range(0x3001) if chr(point).isspace()]] = True


def safe_split_for(content: dict[str, Any]) -> SafeSplit:
    """The safe split of a `tokenizer.json`. Added words are matched first, so with them no split is safe."""
    if not all(token["special"] for token in content["added_tokens"]):
        return SafeSplit.NOWHERE
    normal = {part["type"] for part in pipeline_steps(content["normalizer"], "normalizers")}
    before = pipeline_steps(content["pre_tokenizer"], "pretokenizers")
    kinds = [part["type"] for part in before]
    if kinds in (["BertPreTokenizer"], ["WhitespaceSplit"]) or before == [_WHITESPACE, _CHARACTER_SPLIT]:
        if normal <= _BY_CHARACTER:
            return SafeSplit.AROUND_SEPARATORS
        return SafeSplit.AROUND_DROPPED if normal <= _COMPOSING else SafeSplit.NOWHERE
    if kinds == ["WhitespaceSplit", "Metaspace"] and before[1]["prepend_scheme"] == "always" and before[1]["split"]:
        return SafeSplit.AROUND_DROPPED if normal <= _COMPOSING else SafeSplit.NOWHERE
    if kinds in (["ByteLevel"], ["Metaspace"]) and before[0].get("use_regex", before[0].get("split")):
        return SafeSplit.BEFORE_SPACES if normal <= _COMPOSING else SafeSplit.NOWHERE
    return SafeSplit.NOWHERE


def isolates_char(pipeline: Pipeline, character: str, split: SafeSplit) -> bool:
    """Whether the pipeline separates a character from letters on both sides."""
    if any(unicodedata.combining(part) for part in unicodedata.normalize("NFKD", character)):
        return False
    if _normalize(pipeline, f"a{character}a") == _normalize(pipeline, "aa"):
        return False  # the normalizer removes it, so it separates nothing
    letter, around = _pretokenize(pipeline, "a"), _pretokenize(pipeline, f"a{character}a")
    if split is SafeSplit.AROUND_DROPPED:
        return around == letter * 2 and not _pretokenize(pipeline, character)
    return len(around) > 1 and around[:1] == letter and around[-1:] == letter


def code_points(text: str) -> CodePoints:
    """The code points of a text. A lone surrogate raises UnicodeEncodeError."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


def splits_before_spaces(points: CodePoints) -> Ints:
    """The start of a text, and every single plain space between two visible characters."""
    if not len(points):
        return np.zeros(0, dtype=np.int64)
    visible = ~is_whitespace(points)
    inner = (points[1:-1] == 0x20) & visible[:-2] & visible[2:]
    return np.concatenate(([0], np.flatnonzero(inner) + 1))


def is_whitespace(points: CodePoints) -> Bools:
    """Which code points are whitespace."""
    return _SPACES[np.minimum(points, 0x3000)] & (points <= 0x3000)


def _normalize(pipeline: Pipeline, text: str) -> str:
    return text if pipeline.normalizer is None else pipeline.normalizer.normalize_str(text)


def _pretokenize(pipeline: Pipeline, text: str) -> list[str]:
    return [word for word, _ in pipeline.pre_tokenizer.pre_tokenize_str(_normalize(pipeline, text))]

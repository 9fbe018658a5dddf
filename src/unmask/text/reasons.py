"""Why a piece of input was left out. The manifest counts documents under these words.

What arrives: nothing. What leaves: one name for each reason, used by reading, cleaning and removing duplicates; and
the same name for several pieces.
What never happens here: judging. The stages decide; this is only their shared vocabulary.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Reason(StrEnum):
    """The reasons, as a user reads them."""

    INVALID_UTF8 = "invalid UTF-8"
    OTHER_ENCODING = "not UTF-8"
    BROKEN_JSON = "broken JSON"
    MISSING_FIELD = "missing field"
    NOT_TEXT = "field is not a string"
    BAD_ENTITY = "unusable entity"
    BAD_DIALOGUE = "unusable dialogue"
    DAMAGED_FILE = "damaged file"
    UNREADABLE_FILE = "unreadable file"
    EMPTY_FILE = "empty file"
    UNKNOWN_KIND = "folder with other files"
    NEAR_EMPTY = "near-empty document"
    DUPLICATE = "exact duplicate"
    NEAR_DUPLICATE = "near duplicate"
    NO_TOKENS = "document without tokens"
    """The tokenizer leaves nothing of it."""


_SEVERAL: Mapping[str, str] = MappingProxyType(
    {
        Reason.MISSING_FIELD: "missing fields",
        Reason.NOT_TEXT: "fields are not strings",
        Reason.BAD_ENTITY: "unusable entities",
        Reason.BAD_DIALOGUE: "unusable dialogues",
        Reason.DAMAGED_FILE: "damaged files",
        Reason.UNREADABLE_FILE: "unreadable files",
        Reason.EMPTY_FILE: "empty files",
        Reason.UNKNOWN_KIND: "folders with other files",
        Reason.NEAR_EMPTY: "near-empty documents",
        Reason.DUPLICATE: "exact duplicates",
        Reason.NEAR_DUPLICATE: "near duplicates",
        Reason.NO_TOKENS: "documents without tokens",
    }
)
"""What several are called, where that is another word."""


def counted(number: int, reason: str) -> str:
    """How many pieces were left out for a reason, in words."""
    return f"{number:,} {reason if number == 1 else _SEVERAL.get(reason, reason)}"


class Unusable(Exception):
    """A file cannot be read any further. It never leaves this folder: the reader turns it into a `Dropped`."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail

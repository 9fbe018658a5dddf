"""Why a piece of input was left out. The manifest counts documents under these words.

What arrives: nothing. What leaves: one name for each reason, used by reading, cleaning and removing duplicates; and
the same name for several pieces.
What never happens here: judging. The stages decide; this is only their shared vocabulary.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class DropReason(StrEnum):
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


_PLURALS: Mapping[str, str] = MappingProxyType(
    {
        DropReason.MISSING_FIELD: "missing fields",
        DropReason.NOT_TEXT: "fields are not strings",
        DropReason.BAD_ENTITY: "unusable entities",
        DropReason.BAD_DIALOGUE: "unusable dialogues",
        DropReason.DAMAGED_FILE: "damaged files",
        DropReason.UNREADABLE_FILE: "unreadable files",
        DropReason.EMPTY_FILE: "empty files",
        DropReason.UNKNOWN_KIND: "folders with other files",
        DropReason.NEAR_EMPTY: "near-empty documents",
        DropReason.DUPLICATE: "exact duplicates",
        DropReason.NEAR_DUPLICATE: "near duplicates",
        DropReason.NO_TOKENS: "documents without tokens",
    }
)
"""What several are called, where that is another word."""


def format_drop_count(number: int, reason: str) -> str:
    """How many pieces were left out for a reason, in words."""
    return f"{number:,} {reason if number == 1 else _PLURALS.get(reason, reason)}"


class UnreadableFile(Exception):
    """A file cannot be read any further. It never leaves this folder: the reader turns it into a `Dropped`."""

    def __init__(self, reason: DropReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail

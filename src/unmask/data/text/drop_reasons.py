"""The reasons for which input is left out; the manifest counts documents by them."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class DropReason(StrEnum):
    """The reasons as shown to users."""

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
    """The tokenizer returns no token."""


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
"""Plural forms that differ from the singular."""


def format_drop_count(number: int, reason: str) -> str:
    """A number of dropped pieces with its reason, in words."""
    return f"{number:,} {reason if number == 1 else _PLURALS.get(reason, reason)}"


class UnreadableFile(Exception):
    """A file cannot be read any further; the reader turns it into a `DroppedInput`."""

    def __init__(self, reason: DropReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail

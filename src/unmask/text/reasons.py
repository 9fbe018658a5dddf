"""Why a piece of input was left out. The manifest counts documents under these words.

What arrives: nothing. What leaves: one name for each reason, used by reading, cleaning and removing duplicates.
What never happens here: judging. The stages decide; this is only their shared vocabulary.
"""

from enum import StrEnum


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


class Unusable(Exception):
    """A file cannot be read any further. It never leaves this folder: the reader turns it into a `Dropped`."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail

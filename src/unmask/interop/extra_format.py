"""What a folder may hold beside weights, settings and tokenizer: files for one more library, proven like the rest.

What arrives: a folder that was just written. What leaves: more files in it, and how far the other library is apart.
What never happens here: a file that was not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.hf.architecture import Architecture
from unmask.nets.model import EncoderWithHeads

TOLERANCE = 1e-4
"""The most that two libraries may differ in a number."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFolder:
    """A folder that was just written, and what it is compared with."""

    folder: Path
    model: EncoderWithHeads
    """The network as we read it back."""
    tokenizer: Tokenizer
    architecture: Architecture
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class FormatCheck:
    """What one more library was shown to do as we do."""

    library: str
    version: str
    compared: str
    num_rows: int
    max_difference: float
    """The largest difference."""

    def __str__(self) -> str:
        who = f"{self.library} {self.version} and unmask"
        return f"{who} agree on the {self.compared} of {self.num_rows} rows; they differ by at most {self.max_difference:.1e}"

    def checked(self) -> FormatCheck:
        """Itself; refuses a difference that is too large."""
        if not self.max_difference <= TOLERANCE:  # written so that NaN is refused too
            raise InputError(
                f"The export is refused: {self.library} {self.version} gives other {self.compared} (they differ by "
                f"{self.max_difference:.2g}, allowed is {TOLERANCE:g}). Are all weights finite?"
            )
        return self


class ExtraFormat(Protocol):
    """Files for one more library."""

    def require_library(self) -> None:
        """Refuse to begin where the library is missing."""

    def add(self, written: WrittenFolder) -> FormatCheck:
        """Write the files, and refuse them unless the library reads from them what we say."""

    def card_metadata(self) -> Mapping[str, str]:
        """What the head of the card says because of them."""

    def usage(self, architecture: Architecture) -> Sequence[str]:
        """How they are used: lines of Python for the card."""

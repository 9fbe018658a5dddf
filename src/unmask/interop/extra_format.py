"""The protocol of additional export formats (ONNX, sentence-transformers), each checked before the folder is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.hf.model_map import Architecture
from unmask.nets.model import EncoderWithHeads

TOLERANCE = 1e-4
"""The largest allowed difference between two libraries."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFolder:
    """A folder that was just written, and what it is compared with."""

    folder: Path
    model: EncoderWithHeads
    """The network, read back from the folder."""
    tokenizer: Tokenizer
    architecture: Architecture
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class FormatCheck:
    """The result of a comparison with one further library."""

    library: str
    version: str
    compared: str
    num_rows: int
    max_difference: float

    def __str__(self) -> str:
        agree = f"{self.library} {self.version} and unmask agree on the {self.compared} of {self.num_rows} rows"
        return f"{agree}; they differ by at most {self.max_difference:.1e}"

    def checked(self) -> FormatCheck:
        """The check itself; refuses a difference above the tolerance."""
        if not self.max_difference <= TOLERANCE:  # also refuses NaN
            raise InputError(
                f"The export is refused: {self.library} {self.version} gives other {self.compared} (they differ by "
                f"{self.max_difference:.2g}, allowed is {TOLERANCE:g}). Check that all weights are finite."
            )
        return self


class ExtraFormat(Protocol):
    """Files for one further library."""

    def require_library(self) -> None:
        """Raise an error if the library is not installed."""

    def add(self, written: WrittenFolder) -> FormatCheck:
        """Write the files; refuse them unless the library computes the same from them."""

    def card_metadata(self) -> Mapping[str, str]:
        """Additions to the metadata of the model card."""

    def usage(self, architecture: Architecture) -> Sequence[str]:
        """Python code for the model card."""

"""Row plans: which pieces of the corpus make up each row, the special tokens around them, and the order of reading.

A row is a list of pieces, and a piece is a stretch of neighboring tokens, so formats differ in planning only, and rows
are built by one function. The position in training is one integer. Shuffled epochs are keyed permutations, computed for
the requested rows; a format with streams is read in the order of its plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from unmask.core.errors import RecipeError
from unmask.core.ragged import concat_ranges, offsets, positions_in_rows
from unmask.core.records import Bits, Bools, Ids, Inputs, Ints, RowBatch, RowClass, TokenUnits, UnitFlag
from unmask.core.rng import Key, permuted_index
from unmask.data.corpus.corpus import Corpus
from unmask.data.tokenize.vocab import Vocab


class StartToken(StrEnum):
    """The special token before the first piece of a row, and of every document that attention is kept inside."""

    NONE = "none"
    CLS = "cls"
    BOS = "bos"


class EndToken(StrEnum):
    """The special token after every piece of a row."""

    NONE = "none"
    SEP = "sep"
    EOS = "eos"


@dataclass(frozen=True, slots=True)
class SpecialTokenTemplate:
    """Which special tokens begin a row and end its pieces."""

    start: StartToken = StartToken.CLS
    end: EndToken = EndToken.SEP

    @property
    def num_start(self) -> int:
        """Tokens before the first piece: 0 or 1."""
        return int(self.start is not StartToken.NONE)

    @property
    def num_end(self) -> int:
        """Tokens after each piece: 0 or 1."""
        return int(self.end is not EndToken.NONE)

    def text_budget(self, length: int, num_pieces: int) -> int:
        """How many text tokens fit into a row of `length` with that many pieces."""
        return length - self.num_start - num_pieces * self.num_end

    def start_id(self, vocab: Vocab) -> int:
        """The id of the start token."""
        return vocab.bos if self.start is StartToken.BOS else vocab.cls

    def end_id(self, vocab: Vocab) -> int:
        """The id of the end token."""
        return vocab.eos if self.end is EndToken.EOS else vocab.sep


CLS_SEP = SpecialTokenTemplate()
"""`[CLS] A [SEP] B [SEP]`: encoders."""
BOS_EOS = SpecialTokenTemplate(StartToken.BOS, EndToken.EOS)
"""`<s> A </s>`: encoder-decoders and language models with a start token."""
EOS_ONLY = SpecialTokenTemplate(StartToken.NONE, EndToken.EOS)
"""`A </s>`: GPT-2 and T5."""
NO_SPECIAL_TOKENS = SpecialTokenTemplate(StartToken.NONE, EndToken.NONE)
"""Text alone: contiguous streams."""


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Rows as pieces. `rows[i]:rows[i + 1]` are the pieces of row i."""

    start: Ints
    """The address of each piece's first token."""
    length: npt.NDArray[np.int32]
    segment: Bits
    document: npt.NDArray[np.uint16]
    """Which part of its row a piece belongs to: parts do not see each other where borders are kept."""
    rows: Ints
    facts: Mapping[str, npt.NDArray[np.int8]] = field(default_factory=lambda: MappingProxyType({}))
    continues_previous: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def __len__(self) -> int:
        return len(self.rows) - 1

    @property
    def num_bytes(self) -> int:
        """The bytes this plan takes in memory."""
        return sum(array.nbytes for array in (self.start, self.length, self.segment, self.document, self.rows))


class InputFormat(Protocol):
    """Decides which pieces make a row. A frozen dataclass that is its own configuration."""

    @property
    def row_facts(self) -> frozenset[str]:
        """The facts it can state about a row."""

    @property
    def template(self) -> SpecialTokenTemplate:
        """Where its special tokens stand."""

    @property
    def num_segments(self) -> int:
        """How many kinds of segment it numbers tokens by."""

    @property
    def isolate_documents(self) -> bool:
        """Whether attention stays inside each document of a row."""

    @property
    def num_streams(self) -> int:
        """How many streams are read in order, one row of each in a step; 0 where rows are shuffled in every epoch."""

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        """Plan every row of at most `length` tokens: global, cheap, and a pure function of its arguments."""


def build_rows(corpus: Corpus, plan: RowPlan, rows: Ints, template: SpecialTokenTemplate, vocab: Vocab) -> RowBatch:
    """Build some rows of a plan: fetch their pieces and place the special tokens."""
    count = plan.rows[rows + 1] - plan.rows[rows]
    piece = concat_ranges(plan.rows[rows], count)
    first = offsets(count)[:-1]
    length = plan.length[piece].astype(np.int64)
    part = plan.document[piece]
    opens = np.zeros(len(piece), dtype=np.int64)
    if template.num_start:
        opens[1:] = part[1:] != part[:-1]
        opens[first] = 1
    taken = opens + length + template.num_end
    begin = offsets(taken)
    out = _RowArrays(int(begin[-1]), vocab)
    text = begin[:-1] + opens
    corpus.gather(plan.start[piece], length, out.ids, out.bits, text)
    out.mark_piece_starts(text)
    out.place_special_tokens(begin[:-1][opens > 0], template.start_id(vocab))
    if template.num_end:
        out.place_special_tokens(text + length, template.end_id(vocab))
    return RowBatch(
        ids=out.ids,
        segment=np.repeat(plan.segment[piece], taken),
        document=np.repeat(part.astype(np.int32), taken),
        protected=out.protected,
        units=TokenUnits(out.bits),
        rows=np.append(begin[first], begin[-1]),
        facts=MappingProxyType({name: value[rows].astype(np.int64) for name, value in plan.facts.items()}),
        continues_previous=plan.continues_previous[rows] if len(plan.continues_previous) else plan.continues_previous,
    )


def inputs_like(example: RowBatch, ids: Ids) -> Inputs:
    """Inputs of the same shape as the example, with other ids."""
    return Inputs(
        ids,
        example.segment,
        example.document,
        positions_in_rows(example.rows),
        example.rows,
        continues_previous=example.continues_previous,
    )


def row_class_targets(example: RowBatch) -> tuple[RowClass, ...]:
    """The facts about each row as targets; a corruption does not change them."""
    return tuple(RowClass(name, value) for name, value in sorted(example.facts.items()))


class _RowArrays:
    """The arrays of the rows being built."""

    def __init__(self, size: int, vocab: Vocab) -> None:
        self.ids: Ids = np.empty(size, dtype=np.int32)
        self.bits: Bits = np.empty(size, dtype=np.uint8)
        self.protected: Bools = np.zeros(size, dtype=np.bool_)

    def mark_piece_starts(self, at: Ints) -> None:
        """A piece begins here: so do its first word and sentence, and what is left of a cut phrase or entity."""
        bits = self.bits[at]
        whole = (((bits & UnitFlag.IN_PHRASE) != 0) * UnitFlag.PHRASE) | (
            ((bits & UnitFlag.IN_ENTITY) != 0) * UnitFlag.ENTITY
        )
        self.bits[at] = bits | whole.astype(np.uint8) | UnitFlag.BORDER

    def place_special_tokens(self, at: Ints, token: int) -> None:
        self.ids[at] = token
        self.bits[at] = UnitFlag.BORDER
        self.protected[at] = True


@dataclass(frozen=True, slots=True)
class DynamicMasking:
    """Draw anew each time a row is read: dynamic masking (RoBERTa)."""

    def draw_number(self, visit: Ints) -> Ints:
        """The number of the draw is the number of the visit."""
        return visit


@dataclass(frozen=True, slots=True)
class StaticMasking:
    """Draw `count` times and then repeat: static masking (BERT froze 10 copies of its data)."""

    num_copies: int = 10

    def __post_init__(self) -> None:
        if self.num_copies < 1:
            raise RecipeError(f"Static masking needs at least 1 copy, found {self.num_copies}.")

    def draw_number(self, visit: Ints) -> Ints:
        """Visit 10 sees the draw of visit 0 again."""
        return visit % self.num_copies


MaskingMode = DynamicMasking | StaticMasking


@dataclass(frozen=True, slots=True)
class EpochSampler:
    """The order in which the rows of a plan are read, pass after pass."""

    num_rows: int
    masking: MaskingMode
    key: Key
    shuffled: bool = True
    """Whether every epoch has an order of its own; else rows are read in the order of the plan."""

    def __call__(self, number: Ints) -> tuple[Ints, Key]:
        """The rows of these visits, and the key under which each is corrupted."""
        passes, place = np.divmod(number, self.num_rows)
        if not self.shuffled:
            return place, self.key_of(place, passes)
        row = np.empty_like(place)
        for one in np.unique(passes):
            here = passes == one
            row[here] = permuted_index(place[here], self.num_rows, self.key.fold_in("order", int(one)))
        return row, self.key_of(row, passes)

    def key_of(self, row: Ints, visit: Ints) -> Key:
        """The key of a row at one of its visits."""
        renewal = self.masking.draw_number(visit)
        return Key(self.key.fold_in("draw").fold_in(renewal).fold_in(row).state)

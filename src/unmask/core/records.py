"""The records that pass from one stage to the next: documents, tokens, rows, inputs and targets.

Every record is immutable and checks itself when it is made. After tokenization everything is **row-batched**: rows lie
one after another in flat arrays, and `rows` holds their offsets (row i is `rows[i]:rows[i + 1]`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import nan
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ids: TypeAlias = npt.NDArray[np.int32]
Ints: TypeAlias = npt.NDArray[np.int64]
Bits: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]


class UnitKind(StrEnum):
    """The units a text can be cut into, finest first."""

    TOKEN = "token"
    WORD = "word"
    PHRASE = "phrase"
    ENTITY = "entity"
    SENTENCE = "sentence"
    TURN = "turn"
    """The words of one side of a conversation before the other replies, or before it pauses. Other texts have none."""


class Speaker(StrEnum):
    """Who speaks a turn of a conversation: the label of its mark."""

    QUERY = "Q"
    REPLY = "R"


@dataclass(frozen=True, slots=True)
class Spans:
    """Half-open intervals that are sorted, disjoint and non-empty, or the record refuses to exist."""

    start: Ints
    end: Ints

    def __post_init__(self) -> None:
        if self.start.shape != self.end.shape or self.start.ndim != 1:
            raise ValueError(f"spans need as many starts as ends, got {self.start.shape} and {self.end.shape}")
        if not (self.start < self.end).all():
            raise ValueError("a span is empty or ends before it starts")
        if len(self.start) and (self.start[0] < 0 or not (self.end[:-1] <= self.start[1:]).all()):
            raise ValueError("spans overlap or are not in order")

    def __len__(self) -> int:
        return len(self.start)

    @staticmethod
    def of(*pairs: tuple[int, int]) -> Spans:
        """Spans from written-out pairs, for tests and small tables."""
        table = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        return Spans(table[:, 0].copy(), table[:, 1].copy())

    @property
    def lengths(self) -> Ints:
        """How long each span is."""
        return self.end - self.start


NO_SPANS = Spans.of()


@dataclass(frozen=True, slots=True)
class CharSpans:
    """Character spans of one layer, with a label for each span or for none (entity id, part of speech)."""

    spans: Spans
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.labels and len(self.labels) != len(self.spans):
            raise ValueError(f"{len(self.labels)} labels for {len(self.spans)} marks")


@dataclass(frozen=True, slots=True)
class DroppedInput:
    """A piece of input that was left out, why, and where it stood (`file:line`)."""

    reason: str
    where: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A text and the units found on it. Units are found once, here, and never again."""

    id: str
    text: str
    char_spans: Mapping[UnitKind, CharSpans] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for layer, marks in self.char_spans.items():
            if len(marks.spans) and marks.spans.end[-1] > len(self.text):
                raise ValueError(f"document {self.id}: a {layer} mark ends beyond the text")

    def __reduce__(self) -> tuple[type[Document], tuple[str, str, dict[UnitKind, CharSpans]]]:
        return Document, (self.id, self.text, dict(self.char_spans))  # a mapping proxy cannot go to another process

    def with_char_spans(self, kind: UnitKind, char_spans: CharSpans) -> Document:
        """The same document with one layer added or replaced."""
        return Document(self.id, self.text, MappingProxyType({**self.char_spans, kind: char_spans}))


class UnitFlag:
    """The bits of the unit byte of every token."""

    WORD = 1
    """A word starts here. Words cover every token."""
    SENTENCE = 2
    """A sentence starts here. Sentences cover every token."""
    PHRASE = 4
    """A phrase starts here."""
    IN_PHRASE = 8
    """This token belongs to a phrase."""
    ENTITY = 16
    """An entity starts here."""
    IN_ENTITY = 32
    """This token belongs to an entity."""
    TURN = 64
    """A turn of a conversation starts here. Turns cover a conversation, and no other document has one."""
    REPLY = 128
    """The turn that starts here is spoken by the replying side; without this bit, by the other."""
    BORDER = WORD | SENTENCE
    """What a special token carries: nothing reaches across it."""


@dataclass(frozen=True, slots=True)
class TokenUnits:
    """Which words, sentences, phrases and entities the tokens form: one byte a token.

    Words and sentences cover the whole text, so a start bit is enough; phrases and entities leave gaps and also have
    a bit for "inside". A turn starts a sentence and has a speaker. Shards store the byte, every corruption reads it.
    """

    bits: Bits

    def __len__(self) -> int:
        return len(self.bits)

    @staticmethod
    def of(length: int, spans: Mapping[UnitKind, Spans]) -> TokenUnits:
        """Units from token spans. Tokens outside every word become words of one token; sentences stretch to meet."""
        bits = np.zeros(length, dtype=np.uint8)
        words = spans.get(UnitKind.WORD, NO_SPANS)
        bits[~_covered(words, length)] |= UnitFlag.WORD
        bits[words.start] |= UnitFlag.WORD
        bits[spans.get(UnitKind.SENTENCE, NO_SPANS).start] |= UnitFlag.BORDER
        bits[spans.get(UnitKind.TURN, NO_SPANS).start] |= UnitFlag.BORDER | UnitFlag.TURN
        bits[:1] |= UnitFlag.BORDER
        for layer, (start, inside) in _WITH_GAPS.items():
            found = spans.get(layer, NO_SPANS)
            bits[found.start] |= np.uint8(start)
            bits[_covered(found, length)] |= np.uint8(inside)
        return TokenUnits(bits)

    def with_replies(self, starts: Ints) -> TokenUnits:
        """The same units, where the turns that start at these tokens are spoken by the one who replies."""
        bits = self.bits.copy()
        bits[starts] |= UnitFlag.REPLY
        return TokenUnits(bits)

    def spans(self, kind: UnitKind) -> Spans:
        """The token spans of one layer. A turn ends where the next one starts, or with the text."""
        length = len(self.bits)
        if kind is UnitKind.TOKEN:
            return Spans(np.arange(length), np.arange(1, length + 1))
        if kind in _WITH_GAPS:
            start, inside = _WITH_GAPS[kind]
            starts = np.flatnonzero(self.bits & start)
            stops = np.append(np.flatnonzero(((self.bits & inside) == 0) | ((self.bits & start) != 0)), length)
            return Spans(starts, stops[np.searchsorted(stops, starts, side="right")])
        starts = np.flatnonzero(self.bits & _STARTS[kind])
        return Spans(starts, np.append(starts[1:], length)[: len(starts)])


_STARTS = {UnitKind.WORD: UnitFlag.WORD, UnitKind.SENTENCE: UnitFlag.SENTENCE, UnitKind.TURN: UnitFlag.TURN}
_WITH_GAPS = {
    UnitKind.PHRASE: (UnitFlag.PHRASE, UnitFlag.IN_PHRASE),
    UnitKind.ENTITY: (UnitFlag.ENTITY, UnitFlag.IN_ENTITY),
}


def _covered(spans: Spans, length: int) -> Bools:
    steps = np.zeros(length + 1, dtype=np.int8)
    steps[spans.start] += 1
    steps[spans.end] -= 1
    return np.cumsum(steps[:-1]) > 0


@dataclass(frozen=True, slots=True)
class TokenDoc:
    """A tokenised document: what shards store. `labels` holds one label for each span of a labelled layer."""

    ids: Ids
    units: TokenUnits
    labels: Mapping[UnitKind, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.units):
            raise ValueError(f"{len(self.ids)} tokens but {len(self.units)} unit bytes")


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows with their special tokens placed and nothing corrupted yet."""

    ids: Ids
    segment: Bits
    """Which segment of a pair a token belongs to."""
    document: Ids
    """Which document of its row a token belongs to, counted from 0: attention may be kept inside it."""
    protected: Bools
    """Positions that no corruption may touch: the special tokens."""
    units: TokenUnits
    rows: Ints
    """Offsets: row i is `rows[i]:rows[i + 1]`."""
    facts: Mapping[str, Ints] = field(default_factory=lambda: MappingProxyType({}))
    """Truths about each row, such as `next` or `order`: one number a row."""
    continues_previous: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """Whether a row goes on where the previous row of its lane ended (memory models); empty when no row does."""

    def __len__(self) -> int:
        return len(self.rows) - 1

    @property
    def lengths(self) -> Ints:
        """The number of tokens of each row, special tokens counted."""
        return np.diff(self.rows)


IGNORE_INDEX = -100
"""An answer that no loss counts; torch's own number for it."""
Array: TypeAlias = Any
"""An array of numpy in the data half; in a batch of the network half a tensor. A target is one class for both."""


class Axis(StrEnum):
    """What an array of a target has one entry for: its field's `axis`. A field with one also has a `fill`."""

    PREDICTION = "prediction"
    ROW = "row"
    TOKEN = "token"


class Fill(StrEnum):
    """What pads an array of a target to a bucket, where this is no constant: its field's `fill`."""

    FIRST_PADDING_TOKEN = "first padding token"
    LAST_PREDICTION = "last prediction"


HOST_ONLY: Mapping[str, bool] = MappingProxyType({"host": True})
"""For a field of a batch that no kernel reads: two batches that differ in it alone have one shape."""
_POSITION = {"axis": Axis.PREDICTION, "fill": Fill.FIRST_PADDING_TOKEN}
_ANSWER = {"axis": Axis.PREDICTION, "fill": IGNORE_INDEX}
_ROW_ANSWER = {"axis": Axis.ROW, "fill": IGNORE_INDEX}
_ROW_NUMBER = {"axis": Axis.ROW, "fill": nan}


def _empty() -> Array:
    return np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class TargetBase:
    """What every target has in a batch."""

    num_padding: int = field(default=0, kw_only=True, metadata=HOST_ONLY)
    """How many of the last answers pad the batch to a bucket."""


@dataclass(frozen=True, slots=True)
class Cloze(TargetBase):
    """The token that stood at each position. `spans` are the selections as drawn, in batch positions."""

    positions: Array = field(metadata=_POSITION)
    answers: Array = field(metadata=_ANSWER)
    spans: Spans = field(metadata=HOST_ONLY)
    uniform: Array = field(default_factory=_empty, kw_only=True, metadata={"axis": Axis.PREDICTION, "fill": 0})
    """In a batch: a number from 0 to 1 for each position, by which a generator samples a token there."""

    def __post_init__(self) -> None:
        if not len(self.positions) or len(self.positions) != len(self.answers):
            raise ValueError(f"a cloze needs an answer for each of 1 or more positions, got {len(self.positions)}")


@dataclass(frozen=True, slots=True)
class NextToken(TargetBase):
    """The token that follows each token. A weight of 0 takes a position out of the loss."""

    weights: Array = field(metadata={"axis": Axis.TOKEN, "fill": 0})
    num_ignored: int = field(default=0, kw_only=True, metadata=HOST_ONLY)
    """In a batch: how many weights are 0, padding not counted."""


@dataclass(frozen=True, slots=True)
class DecoderTarget(TargetBase):
    """A text for each row. `rows` are its offsets; `position` is where each token stood in the original row."""

    ids: Array
    rows: Ints = field(metadata=HOST_ONLY)
    position: Array
    start_id: int | None = field(default=None, kw_only=True, metadata=HOST_ONLY)
    """The token that a decoder begins with; without one, the first token of the row that is rewritten."""


@dataclass(frozen=True, slots=True)
class ContinuationTarget(TargetBase):
    """The text after the source of a row: each token at the position of the one before it."""

    positions: Array
    answers: Array


@dataclass(frozen=True, slots=True)
class PermutedTarget(TargetBase):
    """The tokens at `positions`, each predicted from those of lower `rank`. Rank -1 is context for all."""

    rank: Array
    positions: Array
    answers: Array


@dataclass(frozen=True, slots=True)
class SpanBorders(TargetBase):
    """For tokens of hidden spans: the tokens around the span, the place inside it, and which answer of the cloze."""

    target_index: Array = field(metadata={"axis": Axis.PREDICTION, "fill": Fill.LAST_PREDICTION})
    left: Array = field(metadata=_POSITION)
    right: Array = field(metadata=_POSITION)
    offset: Array = field(metadata={"axis": Axis.PREDICTION, "fill": 0})


@dataclass(frozen=True, slots=True)
class ReplacedTokens(TargetBase):
    """Which tokens a generator replaced; only those at the chosen positions can be."""

    replaced: Array
    positions: Array


@dataclass(frozen=True, slots=True)
class RowClass(TargetBase):
    """A class of each row: is B the next segment, were A and B swapped."""

    name: str
    value: Array = field(metadata=_ROW_ANSWER)


@dataclass(frozen=True, slots=True)
class RowValue(TargetBase):
    """A number of each row (similarity, stars); not a number where a row has none."""

    name: str
    value: Array = field(metadata=_ROW_NUMBER)


@dataclass(frozen=True, slots=True)
class RowMultiLabel(TargetBase):
    """Which labels each row has: one bit for each row and label."""

    name: str
    value: Array


@dataclass(frozen=True, slots=True)
class TokenLabels(TargetBase):
    """A class of some tokens, in order: named entity, part of speech."""

    name: str
    positions: Array = field(metadata=_POSITION)
    value: Array = field(metadata=_ANSWER)
    lengths: tuple[int, ...] = field(default=(), kw_only=True, metadata=HOST_ONLY)
    """In a batch whose rows are scored as chains: how many labelled tokens each row has."""


@dataclass(frozen=True, slots=True)
class AnswerSpan(TargetBase):
    """The first and the last token of the answer in each row; its first token twice if it has none."""

    name: str
    start: Array = field(metadata=_ROW_ANSWER)
    end: Array = field(metadata=_ROW_ANSWER)


@dataclass(frozen=True, slots=True)
class CandidateGroups(TargetBase):
    """Which rows of a group are relevant: choices of a question, candidates of a query. `groups` are offsets."""

    name: str
    groups: Ints = field(metadata=HOST_ONLY)
    value: Array
    num_relevant: int = field(default=0, kw_only=True, metadata=HOST_ONLY)
    """In a batch: how many rows are relevant, of all groups together."""


SequenceTarget: TypeAlias = Cloze | NextToken | DecoderTarget | ContinuationTarget | PermutedTarget
Target: TypeAlias = SequenceTarget | RowClass | RowValue | RowMultiLabel | TokenLabels | AnswerSpan | CandidateGroups
BatchTarget: TypeAlias = Target | SpanBorders | ReplacedTokens
"""A target of a corruption, or one that an objective derives from it in the batch."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a network reads, row-batched as `RowBatch`. `position` counts inside the row."""

    ids: Ids
    segment: Bits
    document: Ids
    position: Ints
    rows: Ints
    prefix: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The number of source tokens of each of the first rows, for a prefix language model: the source attends to itself,
    what follows to the source and its own past. A row after these attends to all of itself."""
    continues_previous: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """Whether each row continues the row of the same number in the batch before; empty where none does."""


@dataclass(frozen=True, slots=True)
class InputsAndTargets:
    """Inputs and targets of the same rows, made by one corruption from one draw."""

    inputs: Inputs
    targets: tuple[Target, ...]
    cached_states: tuple[Floats, ...] = ()
    """The hidden states of the inputs, layer by layer, where a frozen network has computed them before."""

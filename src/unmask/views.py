"""Who may attend to whom, as data, and the proof that no prediction can look up its own answer.

What arrives: rules that compose with `&` and `|`, streams that follow them, and the coordinates of one row.
What leaves: a boolean matrix for each stream (query, key), a list of leaks, or a small picture.
What never happens here: attention. A back-end lowers a view to its kernels and must equal the matrices made here.

A **stream** is one state for each position. In every layer a position keeps its own state (the residual path) and,
where its rule allows, reads the states of the stream it `reads_from`. BERT and GPT have one stream, ELMo has two
directions that never mix, XLNet has a content stream and a query stream that reads the content but does not start from
its own token.

An **answer** says from where a prediction is read and which input token it must never reach. `leaks` walks the tokens
through the layers until nothing new arrives. A **cloze** is safe under any view because its input is replaced: its
positions are handed over as `hidden`. That BERT leaves one chosen token in ten in place is the corruption's choice and
not a leak of the view; a kept position is therefore `hidden` as well.

    >>> leaks(ENCODER, row, following(row))[0].explain()      # row = Layout.of(3): a causal loss under a full view
    "main at 0 must not know token 1, but: token 1 enters main at 1; in layer 1 main at 0 reads main at 1"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from unmask.errors import RecipeError
from unmask.records import Bools, Ids, Ints

ANY_DEPTH = 2**31
"""More layers than any network has: the walk stops by itself when another layer adds nothing."""

_SHOWN = 24


@dataclass(frozen=True, slots=True)
class Layout:
    """The coordinates of one row that rules read: one number a position."""

    index: Ints
    """Where a position stands in the row."""
    document: Ids
    """Which document it belongs to."""
    prefix: Bools
    """Whether it belongs to the source, which everyone sees."""
    rank: Ids
    """When it is drawn in a factorisation order; -1 is seen by everyone."""

    @staticmethod
    def of(length: int, *, prefix: int = 0, document: Sequence[int] = (), rank: Sequence[int] = ()) -> Layout:
        """A row with a source of `prefix` tokens. Unless told: one document, and no order drawn."""
        index = np.arange(length)
        documents = np.asarray(document if len(document) else np.zeros(length), dtype=np.int32)
        ranks = np.asarray(rank if len(rank) else np.full(length, -1), dtype=np.int32)
        if not len(documents) == len(ranks) == length:
            raise ValueError(f"a row of {length} needs as many documents and ranks: {len(documents)}, {len(ranks)}")
        return Layout(index, documents, index < prefix, ranks)

    def __len__(self) -> int:
        return len(self.index)


class Rule(Protocol):
    """Says which positions a position may read, from coordinates alone. `a & b` and `a | b` are rules too."""

    def allows(self, layout: Layout) -> Bools:
        """A matrix of (query, key): true where the query may read the key."""

    def __and__(self, other: Rule) -> Both:
        return Both(self, other)

    def __or__(self, other: Rule) -> Either:
        return Either(self, other)


@dataclass(frozen=True, slots=True)
class Both(Rule):
    """Allows what both rules allow."""

    left: Rule
    right: Rule

    def allows(self, layout: Layout) -> Bools:
        """True where both are."""
        return self.left.allows(layout) & self.right.allows(layout)


@dataclass(frozen=True, slots=True)
class Either(Rule):
    """Allows what at least one of two rules allows."""

    left: Rule
    right: Rule

    def allows(self, layout: Layout) -> Bools:
        """True where one is."""
        return self.left.allows(layout) | self.right.allows(layout)


@dataclass(frozen=True, slots=True)
class Everything(Rule):
    """Everyone sees everyone (BERT)."""

    def allows(self, layout: Layout) -> Bools:
        """True everywhere."""
        return np.ones((len(layout), len(layout)), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Past(Rule):
    """A position sees itself and what stands before it (GPT)."""

    def allows(self, layout: Layout) -> Bools:
        """True where key <= query."""
        return layout.index[None, :] <= layout.index[:, None]


@dataclass(frozen=True, slots=True)
class Future(Rule):
    """A position sees itself and what stands after it (ELMo's backward direction)."""

    def allows(self, layout: Layout) -> Bools:
        """True where key >= query."""
        return layout.index[None, :] >= layout.index[:, None]


@dataclass(frozen=True, slots=True)
class Prefix(Rule):
    """The source sees the source; the target sees the source and its own past (UniLM's sequence to sequence)."""

    def allows(self, layout: Layout) -> Bools:
        """True where the key is source, or neither is and key <= query."""
        return layout.prefix[None, :] | (~layout.prefix[:, None] & Past().allows(layout))


@dataclass(frozen=True, slots=True)
class Window(Rule):
    """A position sees `reach` positions to either side (Longformer's sliding window of 2 x reach + 1)."""

    reach: int

    def __post_init__(self) -> None:
        if self.reach < 0:
            raise RecipeError(f"Window needs a reach of 0 or more, found {self.reach}; 0 sees itself alone")

    def allows(self, layout: Layout) -> Bools:
        """True where |query - key| <= reach."""
        near: Bools = np.abs(layout.index[:, None] - layout.index[None, :]) <= self.reach
        return near


@dataclass(frozen=True, slots=True)
class SameDocument(Rule):
    """A position sees its own document, so that texts packed into one row do not mix."""

    def allows(self, layout: Layout) -> Bools:
        """True where query and key share a document."""
        same: Bools = layout.document[:, None] == layout.document[None, :]
        return same


@dataclass(frozen=True, slots=True)
class Drawn(Rule):
    """A position sees what was drawn up to itself in a factorisation order, or strictly before (XLNet)."""

    strict: bool

    def allows(self, layout: Layout) -> Bools:
        """True where the key's rank is lower (or the same, unless strict), or the key is seen by everyone."""
        query, key = layout.rank[:, None], layout.rank[None, :]
        drawn: Bools = (key == -1) | ((key < query) if self.strict else (key <= query))
        return drawn


class Start(StrEnum):
    """What a stream holds before the first layer."""

    TOKEN = "token"
    """The embedding of the token at that position."""
    BLANK = "blank"
    """One learned vector, the same everywhere: the position is known, the token is not."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One state for each position: whom it reads, by which rule, and what it starts from."""

    name: str
    rule: Rule
    reads_from: str
    starts_from: Start = Start.TOKEN


@dataclass(frozen=True, slots=True)
class View:
    """The streams of a network. Every stream reads one that exists."""

    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        names = [stream.name for stream in self.streams]
        if not names or len(set(names)) < len(names):
            raise RecipeError(f"View needs one or more streams with names of their own, found {names}; rename one")
        for stream in self.streams:
            if stream.reads_from not in names:
                raise RecipeError(f"stream {stream.name} reads from {stream.reads_from}, but the view has only {names}")

    def at(self, name: str) -> int:
        """The place of a stream in the view."""
        for place, stream in enumerate(self.streams):
            if stream.name == name:
                return place
        raise RecipeError(f"the view has no stream {name}; it has {[stream.name for stream in self.streams]}")


def single(rule: Rule) -> View:
    """A view of one stream, called main, that reads itself."""
    return View((Stream("main", rule, "main"),))


ENCODER = single(Everything())
DOCUMENTS = single(SameDocument())
CAUSAL = single(Past())
PREFIX = single(Prefix())
TWO_DIRECTIONS = View((Stream("forward", Past(), "forward"), Stream("backward", Future(), "backward")))
"""ELMo. The forward state at i says token i + 1, the backward state at i says token i - 1."""
TWO_STREAMS = View(
    (Stream("content", Drawn(False), "content"), Stream("query", Drawn(True), "content", Start.BLANK)),
)
"""XLNet. The query state at i says token i: it knows where it stands and what was drawn before it, but not itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A prediction read from `stream` at `read_at` must not be able to reach the input token at `holds`."""

    stream: str
    read_at: int
    holds: int

    def __post_init__(self) -> None:
        if min(self.read_at, self.holds) < 0:
            raise ValueError(f"positions count from 0: read at {self.read_at}, holds {self.holds}")


def following(layout: Layout, stream: str = "main") -> list[Answer]:
    """The answers of a forward language model: position i says token i + 1, wherever that is not source."""
    return [Answer(stream, i, i + 1) for i in range(len(layout) - 1) if not layout.prefix[i + 1]]


def preceding(layout: Layout, stream: str = "main") -> list[Answer]:
    """The answers of a backward language model: position i says token i - 1."""
    return [Answer(stream, i, i - 1) for i in range(1, len(layout))]


def in_place(positions: Sequence[int], stream: str = "main") -> list[Answer]:
    """The answers of a cloze or of a drawn order: each position says its own token."""
    return [Answer(stream, i, i) for i in positions]


@dataclass(frozen=True, slots=True)
class Leak:
    """An answer that can be looked up, and the shortest way on which its token gets there.

    The path runs from where the token enters (layer 0) to where the prediction is read, one (stream, position) for
    each layer.
    """

    answer: Answer
    path: tuple[tuple[str, int], ...]

    def explain(self) -> str:
        """The leak as a sentence."""
        token = self.answer.holds
        steps = [f"token {token} enters {self.path[0][0]} at {self.path[0][1]}"]
        for layer, (source, reader) in enumerate(zip(self.path, self.path[1:], strict=False), start=1):
            steps.append(f"in layer {layer} {reader[0]} at {reader[1]} reads {source[0]} at {source[1]}")
        return f"{self.answer.stream} at {self.answer.read_at} must not know token {token}, but: {'; '.join(steps)}"


def leaks(
    view: View, layout: Layout, answers: Sequence[Answer], hidden: Sequence[int] = (), depth: int = ANY_DEPTH
) -> list[Leak]:
    """Every answer that its own prediction can reach within `depth` layers; `hidden` tokens never enter."""
    may_read = [stream.rule.allows(layout) for stream in view.streams]
    arrival = _arrivals(view, may_read, hidden, depth)
    found = [answer for answer in answers if arrival[view.at(answer.stream), answer.read_at, answer.holds] >= 0]
    return [Leak(answer, _path(view, may_read, arrival, answer)) for answer in found]


def picture(view: View, layout: Layout) -> list[str]:
    """Who sees whom as a small grid for each stream: a row is the position that reads, # marks what it may read.

    At most 24 positions are drawn, so that a line fits into 80 columns.
    """
    count = min(len(layout), _SHOWN)
    header = "    " + "".join(f"{key:3}" for key in range(count))
    lines = [] if count == len(layout) else [f"the first {count} of {len(layout)} positions"]
    for stream in view.streams:
        blank = ", does not start from its own token" if stream.starts_from is Start.BLANK else ""
        rows = stream.rule.allows(layout)[:count, :count]
        lines += [f"{stream.name}: reads {stream.reads_from}{blank}", header]
        lines += [f"{query:4}" + "".join("  #" if seen else "  ." for seen in row) for query, row in enumerate(rows)]
    return lines


def _arrivals(view: View, may_read: Sequence[Bools], hidden: Sequence[int], depth: int) -> Ids:
    """The layer after which a token is first known, as (stream, position, token); -1 where it never is."""
    length = len(may_read[0])
    visible = np.eye(length, dtype=np.bool_)
    visible[:, list(hidden)] = False
    known = np.stack([visible & (stream.starts_from is Start.TOKEN) for stream in view.streams])
    arrival = np.where(known, 0, -1).astype(np.int32)
    source = [view.at(stream.reads_from) for stream in view.streams]
    edges = np.stack(may_read).astype(np.float32)
    layer = 0
    while layer < depth:
        layer += 1
        # A product of 0/1 matrices counts the ways a token can take; float32 because integers have no fast product.
        fresh = (edges @ known[source].astype(np.float32) > 0) & ~known
        if not fresh.any():
            break
        arrival[fresh] = layer
        known |= fresh
    return arrival


def _path(view: View, may_read: Sequence[Bools], arrival: Ids, answer: Answer) -> tuple[tuple[str, int], ...]:
    """Walk back from the prediction: whoever first knew the token in layer n read one who did in n - 1."""
    at, position = view.at(answer.stream), answer.read_at
    path = [(view.streams[at].name, position)]
    for layer in range(int(arrival[at, position, answer.holds]) - 1, -1, -1):
        source = view.at(view.streams[at].reads_from)
        knew = may_read[at][position] & (arrival[source, :, answer.holds] == layer)
        at, position = source, int(np.flatnonzero(knew)[0])
        path.append((view.streams[at].name, position))
    return tuple(reversed(path))

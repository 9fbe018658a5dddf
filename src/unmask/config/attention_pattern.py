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

from unmask.core.errors import RecipeError
from unmask.core.records import Bools, Ids, Ints

ANY_DEPTH = 2**31
"""More layers than any network has: the walk stops by itself when another layer adds nothing."""

_MAX_RENDERED = 24


@dataclass(frozen=True, slots=True)
class RowCoordinates:
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
    def of(length: int, *, prefix: int = 0, document: Sequence[int] = (), rank: Sequence[int] = ()) -> RowCoordinates:
        """A row with a source of `prefix` tokens. Unless told: one document, and no order drawn."""
        index = np.arange(length)
        documents = np.asarray(document if len(document) else np.zeros(length), dtype=np.int32)
        ranks = np.asarray(rank if len(rank) else np.full(length, -1), dtype=np.int32)
        if not len(documents) == len(ranks) == length:
            raise ValueError(f"a row of {length} needs as many documents and ranks: {len(documents)}, {len(ranks)}")
        return RowCoordinates(index, documents, index < prefix, ranks)

    def __len__(self) -> int:
        return len(self.index)


class AttentionRule(Protocol):
    """Says which positions a position may read, from coordinates alone. `a & b` and `a | b` are rules too."""

    def allows(self, layout: RowCoordinates) -> Bools:
        """A matrix of (query, key): true where the query may read the key."""

    def __and__(self, other: AttentionRule) -> And:
        return And(self, other)

    def __or__(self, other: AttentionRule) -> Or:
        return Or(self, other)


@dataclass(frozen=True, slots=True)
class And(AttentionRule):
    """Allows what both rules allow."""

    left: AttentionRule
    right: AttentionRule

    def allows(self, layout: RowCoordinates) -> Bools:
        """True where both are."""
        return self.left.allows(layout) & self.right.allows(layout)


@dataclass(frozen=True, slots=True)
class Or(AttentionRule):
    """Allows what at least one of two rules allows."""

    left: AttentionRule
    right: AttentionRule

    def allows(self, layout: RowCoordinates) -> Bools:
        """True where one is."""
        return self.left.allows(layout) | self.right.allows(layout)


@dataclass(frozen=True, slots=True)
class Full(AttentionRule):
    """Everyone sees everyone (BERT)."""

    def allows(self, layout: RowCoordinates) -> Bools:
        """True everywhere."""
        return np.ones((len(layout), len(layout)), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Causal(AttentionRule):
    """A position sees itself and what stands before it (GPT)."""

    def allows(self, layout: RowCoordinates) -> Bools:
        """True where key <= query."""
        return layout.index[None, :] <= layout.index[:, None]


@dataclass(frozen=True, slots=True)
class AntiCausal(AttentionRule):
    """A position sees itself and what stands after it (ELMo's backward direction)."""

    def allows(self, layout: RowCoordinates) -> Bools:
        """True where key >= query."""
        return layout.index[None, :] >= layout.index[:, None]


@dataclass(frozen=True, slots=True)
class PrefixLM(AttentionRule):
    """The source sees the source; the target sees the source and its own past (UniLM's sequence to sequence)."""

    def allows(self, layout: RowCoordinates) -> Bools:
        """True where the key is source, or neither is and key <= query."""
        return layout.prefix[None, :] | (~layout.prefix[:, None] & Causal().allows(layout))


@dataclass(frozen=True, slots=True)
class SlidingWindow(AttentionRule):
    """A position sees `reach` positions to either side (Longformer's sliding window of 2 x reach + 1)."""

    radius: int

    def __post_init__(self) -> None:
        if self.radius < 0:
            raise RecipeError(f"Window needs a reach of 0 or more, found {self.radius}; 0 sees itself alone")

    def allows(self, layout: RowCoordinates) -> Bools:
        """True where |query - key| <= reach."""
        near: Bools = np.abs(layout.index[:, None] - layout.index[None, :]) <= self.radius
        return near


@dataclass(frozen=True, slots=True)
class WithinDocument(AttentionRule):
    """A position sees its own document, so that texts packed into one row do not mix."""

    def allows(self, layout: RowCoordinates) -> Bools:
        """True where query and key share a document."""
        same: Bools = layout.document[:, None] == layout.document[None, :]
        return same


@dataclass(frozen=True, slots=True)
class FactorizationOrder(AttentionRule):
    """A position sees what was drawn up to itself in a factorisation order, or strictly before (XLNet)."""

    strict: bool

    def allows(self, layout: RowCoordinates) -> Bools:
        """True where the key's rank is lower (or the same, unless strict), or the key is seen by everyone."""
        query, key = layout.rank[:, None], layout.rank[None, :]
        drawn: Bools = (key == -1) | ((key < query) if self.strict else (key <= query))
        return drawn


class StreamInit(StrEnum):
    """What a stream holds before the first layer."""

    TOKEN = "token"
    """The embedding of the token at that position."""
    BLANK = "blank"
    """One learned vector, the same everywhere: the position is known, the token is not."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One state for each position: whom it reads, by which rule, and what it starts from."""

    name: str
    rule: AttentionRule
    reads_from: str
    starts_from: StreamInit = StreamInit.TOKEN


@dataclass(frozen=True, slots=True)
class AttentionPattern:
    """The streams of a network. Every stream reads one that exists."""

    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        names = [stream.name for stream in self.streams]
        if not names or len(set(names)) < len(names):
            raise RecipeError(f"View needs one or more streams with names of their own, found {names}; rename one")
        for stream in self.streams:
            if stream.reads_from not in names:
                raise RecipeError(f"stream {stream.name} reads from {stream.reads_from}, but the view has only {names}")

    def index_of(self, name: str) -> int:
        """The place of a stream in the view."""
        for place, stream in enumerate(self.streams):
            if stream.name == name:
                return place
        raise RecipeError(f"the view has no stream {name}; it has {[stream.name for stream in self.streams]}")


def single_stream(rule: AttentionRule) -> AttentionPattern:
    """A view of one stream, called main, that reads itself."""
    return AttentionPattern((Stream("main", rule, "main"),))


FULL = single_stream(Full())
WITHIN_DOCUMENT = single_stream(WithinDocument())
CAUSAL = single_stream(Causal())
PREFIX_LM = single_stream(PrefixLM())
BIDIRECTIONAL_LM = AttentionPattern(
    (Stream("forward", Causal(), "forward"), Stream("backward", AntiCausal(), "backward"))
)
"""ELMo. The forward state at i says token i + 1, the backward state at i says token i - 1."""
XLNET_STREAMS = AttentionPattern(
    (
        Stream("content", FactorizationOrder(False), "content"),
        Stream("query", FactorizationOrder(True), "content", StreamInit.BLANK),
    ),
)
"""XLNet. The query state at i says token i: it knows where it stands and what was drawn before it, but not itself."""


@dataclass(frozen=True, slots=True)
class PredictionSite:
    """A prediction read from `stream` at `read_at` must not be able to reach the input token at `holds`."""

    stream: str
    read_at: int
    target: int

    def __post_init__(self) -> None:
        if min(self.read_at, self.target) < 0:
            raise ValueError(f"positions count from 0: read at {self.read_at}, holds {self.target}")


def next_token_sites(layout: RowCoordinates, stream: str = "main") -> list[PredictionSite]:
    """The answers of a forward language model: position i says token i + 1, wherever that is not source."""
    return [PredictionSite(stream, i, i + 1) for i in range(len(layout) - 1) if not layout.prefix[i + 1]]


def previous_token_sites(layout: RowCoordinates, stream: str = "main") -> list[PredictionSite]:
    """The answers of a backward language model: position i says token i - 1."""
    return [PredictionSite(stream, i, i - 1) for i in range(1, len(layout))]


def own_token_sites(positions: Sequence[int], stream: str = "main") -> list[PredictionSite]:
    """The answers of a cloze or of a drawn order: each position says its own token."""
    return [PredictionSite(stream, i, i) for i in positions]


@dataclass(frozen=True, slots=True)
class Leak:
    """An answer that can be looked up, and the shortest way on which its token gets there.

    The path runs from where the token enters (layer 0) to where the prediction is read, one (stream, position) for
    each layer.
    """

    site: PredictionSite
    path: tuple[tuple[str, int], ...]

    def explain(self) -> str:
        """The leak as a sentence."""
        token = self.site.target
        steps = [f"token {token} enters {self.path[0][0]} at {self.path[0][1]}"]
        for layer, (source, reader) in enumerate(zip(self.path, self.path[1:], strict=False), start=1):
            steps.append(f"in layer {layer} {reader[0]} at {reader[1]} reads {source[0]} at {source[1]}")
        return f"{self.site.stream} at {self.site.read_at} must not know token {token}, but: {'; '.join(steps)}"


def find_leaks(
    attention: AttentionPattern,
    layout: RowCoordinates,
    sites: Sequence[PredictionSite],
    hidden: Sequence[int] = (),
    depth: int = ANY_DEPTH,
) -> list[Leak]:
    """Every answer that its own prediction can reach within `depth` layers; `hidden` tokens never enter."""
    may_read = [stream.rule.allows(layout) for stream in attention.streams]
    arrival = _arrivals(attention, may_read, hidden, depth)
    found = [
        answer for answer in sites if arrival[attention.index_of(answer.stream), answer.read_at, answer.target] >= 0
    ]
    return [Leak(answer, _path(attention, may_read, arrival, answer)) for answer in found]


def render(attention: AttentionPattern, layout: RowCoordinates) -> list[str]:
    """Who sees whom as a small grid for each stream: a row is the position that reads, # marks what it may read.

    At most 24 positions are drawn, so that a line fits into 80 columns.
    """
    count = min(len(layout), _MAX_RENDERED)
    header = "    " + "".join(f"{key:3}" for key in range(count))
    lines = [] if count == len(layout) else [f"the first {count} of {len(layout)} positions"]
    for stream in attention.streams:
        blank = ", does not start from its own token" if stream.starts_from is StreamInit.BLANK else ""
        rows = stream.rule.allows(layout)[:count, :count]
        lines += [f"{stream.name}: reads {stream.reads_from}{blank}", header]
        lines += [f"{query:4}" + "".join("  #" if seen else "  ." for seen in row) for query, row in enumerate(rows)]
    return lines


def _arrivals(attention: AttentionPattern, may_read: Sequence[Bools], hidden: Sequence[int], depth: int) -> Ids:
    """The layer after which a token is first known, as (stream, position, token); -1 where it never is."""
    length = len(may_read[0])
    visible = np.eye(length, dtype=np.bool_)
    visible[:, list(hidden)] = False
    known = np.stack([visible & (stream.starts_from is StreamInit.TOKEN) for stream in attention.streams])
    arrival = np.where(known, 0, -1).astype(np.int32)
    source = [attention.index_of(stream.reads_from) for stream in attention.streams]
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


def _path(
    attention: AttentionPattern, may_read: Sequence[Bools], arrival: Ids, site: PredictionSite
) -> tuple[tuple[str, int], ...]:
    """Walk back from the prediction: whoever first knew the token in layer n read one who did in n - 1."""
    at, position = attention.index_of(site.stream), site.read_at
    path = [(attention.streams[at].name, position)]
    for layer in range(int(arrival[at, position, site.target]) - 1, -1, -1):
        source = attention.index_of(attention.streams[at].reads_from)
        knew = may_read[at][position] & (arrival[source, :, site.target] == layer)
        at, position = source, int(np.flatnonzero(knew)[0])
        path.append((attention.streams[at].name, position))
    return tuple(reversed(path))

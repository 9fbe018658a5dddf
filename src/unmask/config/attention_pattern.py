"""Attention patterns: which position may read which, as rules over coordinates, and the proof that nothing leaks.

A **rule** answers for one query and one key from their coordinates alone, with operators only. So one and the same rule
gives the matrix of a row in numpy (`AttentionRule.matrix`: the leak proof, the picture of `walk`), the mask of a padded
grid in torch, and the `mask_mod` of FlexAttention. `lower` names the mask that fast kernels know, where there is one.

A **stream** is one state for each position. In every layer a position keeps its own state (the residual path) and,
where its rule allows, reads the states of the stream it `reads_from`. BERT and GPT have one stream, ELMo has two
directions that never mix, XLNet has a content stream and a query stream that reads the content but does not start from
its own token.

A **prediction site** is where a prediction is read and which input token it must never reach. `find_leaks` walks the
tokens through the layers. A cloze is safe under any pattern because its input is replaced: its positions are `hidden`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import Bools, Ids

ANY_DEPTH = 2**31
"""More layers than any network has: the walk stops by itself when another layer adds nothing."""

_MAX_RENDERED = 24


@dataclass(frozen=True, slots=True)
class RowCoordinates:
    """What rules know of positions: four arrays of one shape, of numpy or of torch."""

    index: Any
    """The place in the row, from 0; negative for states of a memory in front of it."""
    document: Any
    """Which document of the row it belongs to."""
    prefix: Any
    """Whether it belongs to the prefix (source), which every position may read."""
    rank: Any
    """The place in a factorization order; -1 may be read by every position."""

    @staticmethod
    def of(length: int, *, prefix: int = 0, document: Sequence[int] = (), rank: Sequence[int] = ()) -> RowCoordinates:
        """A row with a prefix of so many tokens; by default one document and no factorization order."""
        index = np.arange(length)
        documents = np.asarray(document if len(document) else np.zeros(length), dtype=np.int32)
        ranks = np.asarray(rank if len(rank) else np.full(length, -1), dtype=np.int32)
        if not len(documents) == len(ranks) == length:
            raise ValueError(f"a row of {length} needs as many documents and ranks: {len(documents)}, {len(ranks)}")
        return RowCoordinates(index, documents, index < prefix, ranks)

    def __len__(self) -> int:
        return len(self.index)

    def map(self, change: Callable[[Any], Any]) -> RowCoordinates:
        """The same change to each of the four arrays."""
        return RowCoordinates(change(self.index), change(self.document), change(self.prefix), change(self.rank))


class _Recorder(RowCoordinates):
    """Coordinates of one position that note which of them were read."""

    def __init__(self) -> None:
        object.__setattr__(self, "names", set())

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        names: set[str] = object.__getattribute__(self, "names")
        if name == "names":
            return names
        names.add(name)
        return np.zeros(1, dtype=np.bool_ if name == "prefix" else np.int8)


class AttentionRule(Protocol):
    """Which positions a position may read, from coordinates alone. `a & b` and `a | b` are rules too."""

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401
        """True where the query may read the key; both sides broadcast. Only operators: it runs in numpy and torch."""

    def matrix(self, row: RowCoordinates) -> Bools:
        """All pairs of a row as (query, key)."""
        query, key = row.map(lambda one: one[:, None]), row.map(lambda one: one[None, :])
        return np.asarray(self.allows(query, key), dtype=np.bool_)

    def coordinates_read(self) -> frozenset[str]:
        """Which coordinates the rule depends on, by name."""
        recorder = _Recorder()
        self.allows(recorder, recorder)
        return frozenset(recorder.names)

    def __and__(self, other: AttentionRule) -> And:
        return And(self, other)

    def __or__(self, other: AttentionRule) -> Or:
        return Or(self, other)


@dataclass(frozen=True, slots=True)
class And(AttentionRule):
    """What both rules allow."""

    left: AttentionRule
    right: AttentionRule

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401, D102
        return self.left.allows(query, key) & self.right.allows(query, key)


@dataclass(frozen=True, slots=True)
class Or(AttentionRule):
    """What at least one of two rules allows."""

    left: AttentionRule
    right: AttentionRule

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401, D102
        return self.left.allows(query, key) | self.right.allows(query, key)


@dataclass(frozen=True, slots=True)
class Full(AttentionRule):
    """Every position reads every position (BERT)."""

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401
        """True everywhere."""
        return (query.index == query.index) & (key.index == key.index)


@dataclass(frozen=True, slots=True)
class Causal(AttentionRule):
    """A position reads itself and every earlier position (GPT)."""

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401
        """True where key <= query."""
        return key.index <= query.index


@dataclass(frozen=True, slots=True)
class AntiCausal(AttentionRule):
    """A position reads itself and every later position (ELMo's backward direction)."""

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401
        """True where key >= query."""
        return key.index >= query.index


@dataclass(frozen=True, slots=True)
class PrefixLM(AttentionRule):
    """The prefix reads the prefix; any other position reads the prefix and its own past (UniLM, T5's prefix LM)."""

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401
        """True where the key is in the prefix, or neither is and key <= query."""
        return key.prefix | (~query.prefix & (key.index <= query.index))


@dataclass(frozen=True, slots=True)
class SlidingWindow(AttentionRule):
    """A position reads `radius` positions to either side (Longformer's sliding window of 2 x radius + 1)."""

    radius: int

    def __post_init__(self) -> None:
        if self.radius < 0:
            raise RecipeError(
                f"SlidingWindow needs a radius of 0 or more, found {self.radius}; with 0 a position reads itself alone"
            )

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401
        """True where |query - key| <= radius."""
        apart = query.index - key.index
        return (apart <= self.radius) & (-apart <= self.radius)


@dataclass(frozen=True, slots=True)
class WithinDocument(AttentionRule):
    """A position reads its own document, so that texts packed into one row do not mix."""

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401
        """True where query and key share a document."""
        return query.document == key.document


@dataclass(frozen=True, slots=True)
class FactorizationOrder(AttentionRule):
    """A position reads what comes up to itself in a factorization order, or strictly before it (XLNet)."""

    strict: bool

    def allows(self, query: RowCoordinates, key: RowCoordinates) -> Any:  # noqa: ANN401
        """True where the key's rank is lower (or the same, unless strict), or the key has none."""
        before = (key.rank < query.rank) if self.strict else (key.rank <= query.rank)
        return (key.rank == -1) | before


class MaskKind(StrEnum):
    """What kernels know of a rule inside one sequence."""

    FULL = "full"
    """`Full`."""
    CAUSAL = "past"
    """`Causal`."""
    PREFIX_LM = "prefix"
    """`PrefixLM`."""
    SLIDING_WINDOW = "near"
    """`SlidingWindow`."""
    CAUSAL_WINDOW = "near_past"
    """`Causal() & SlidingWindow(radius)`: a position reads itself and `radius` positions before it."""
    DENSE = "dense"
    """Any other rule, as a mask on the padded grid."""


@dataclass(frozen=True, slots=True)
class LoweredRule:
    """A rule as kernels take it: sequences split at documents or not, and the mask inside one."""

    isolate_documents: bool
    mask_kind: MaskKind
    rule: AttentionRule
    """What remains after the split at documents."""
    window: int = 0
    """The radius of a window, else 0."""


def lower(rule: AttentionRule) -> LoweredRule:
    """The plainest form of a rule: `WithinDocument` splits sequences, the rest is a mask kernels know, or DENSE."""
    match rule:
        case WithinDocument():
            return LoweredRule(True, MaskKind.FULL, Full())
        case And(left, right):
            return _lower_both(rule, lower(left), lower(right))
        case Full():
            return LoweredRule(False, MaskKind.FULL, rule)
        case Causal():
            return LoweredRule(False, MaskKind.CAUSAL, rule)
        case PrefixLM():
            return LoweredRule(False, MaskKind.PREFIX_LM, rule)
        case SlidingWindow(radius):
            return LoweredRule(False, MaskKind.SLIDING_WINDOW, rule, radius)
    return LoweredRule(False, MaskKind.DENSE, rule)


def _lower_both(rule: And, left: LoweredRule, right: LoweredRule) -> LoweredRule:
    """The intersection of two rules in their plainest forms."""
    isolate = left.isolate_documents or right.isolate_documents
    for one, other in ((left, right), (right, left)):
        if one.mask_kind is MaskKind.FULL:
            return LoweredRule(isolate, other.mask_kind, other.rule, other.window)
        if one.rule == other.rule:
            return LoweredRule(isolate, one.mask_kind, one.rule, one.window)
        windows = (MaskKind.SLIDING_WINDOW, MaskKind.CAUSAL_WINDOW)
        if one.mask_kind is MaskKind.CAUSAL and other.mask_kind in windows:
            return LoweredRule(isolate, MaskKind.CAUSAL_WINDOW, And(one.rule, other.rule), other.window)
    return LoweredRule(isolate, MaskKind.DENSE, And(left.rule, right.rule))


class StreamInit(StrEnum):
    """What a stream holds before the first layer."""

    TOKEN = "token"
    """The embedding of the token at that position."""
    BLANK = "blank"
    """One learned vector, the same everywhere: the position is known, the token is not."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One state for each position: the stream it reads, by which rule, and what it starts from."""

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
            raise RecipeError(
                f"AttentionPattern needs one or more streams with names of their own, found {names}; rename one"
            )
        for stream in self.streams:
            if stream.reads_from not in names:
                raise RecipeError(
                    f"stream {stream.name} reads from {stream.reads_from}, but the pattern has only {names}"
                )

    def index_of(self, name: str) -> int:
        """The place of a stream in the pattern."""
        for place, stream in enumerate(self.streams):
            if stream.name == name:
                return place
        raise RecipeError(f"the pattern has no stream {name}; it has {[stream.name for stream in self.streams]}")

    @property
    def isolate_documents(self) -> bool:
        """Whether no stream reads across documents, so that each document is a sequence of its own."""
        return all(lower(stream.rule).isolate_documents for stream in self.streams)

    @property
    def is_single(self) -> bool:
        """Whether there is one stream, which starts from tokens."""
        return len(self.streams) == 1 and self.streams[0].starts_from is StreamInit.TOKEN


def single_stream(rule: AttentionRule) -> AttentionPattern:
    """A pattern of one stream, called main, that reads itself."""
    return AttentionPattern((Stream("main", rule, "main"),))


FULL = single_stream(Full())
WITHIN_DOCUMENT = single_stream(WithinDocument())
CAUSAL = single_stream(Causal())
PREFIX_LM = single_stream(PrefixLM())
BIDIRECTIONAL_LM = AttentionPattern(
    (Stream("forward", Causal(), "forward"), Stream("backward", AntiCausal(), "backward"))
)
"""ELMo. The forward state at i predicts token i + 1, the backward state at i token i - 1."""
XLNET_STREAMS = AttentionPattern(
    (
        Stream("content", FactorizationOrder(False), "content"),
        Stream("query", FactorizationOrder(True), "content", StreamInit.BLANK),
    ),
)
"""XLNet. The query state at i predicts token i: it knows its position and what was drawn before it, but not itself."""


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
    """The answers of a forward language model: position i predicts token i + 1, wherever that is not source."""
    return [PredictionSite(stream, i, i + 1) for i in range(len(layout) - 1) if not layout.prefix[i + 1]]


def previous_token_sites(layout: RowCoordinates, stream: str = "main") -> list[PredictionSite]:
    """The answers of a backward language model: position i predicts token i - 1."""
    return [PredictionSite(stream, i, i - 1) for i in range(1, len(layout))]


def own_token_sites(positions: Sequence[int], stream: str = "main") -> list[PredictionSite]:
    """The answers of a cloze or of a drawn order: each position predicts its own token."""
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
    may_read = [stream.rule.matrix(layout) for stream in attention.streams]
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
        rows = stream.rule.matrix(layout)[:count, :count]
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
    """Walk back from the prediction: the state that first knew the token in layer n read one who did in n - 1."""
    at, position = attention.index_of(site.stream), site.read_at
    path = [(attention.streams[at].name, position)]
    for layer in range(int(arrival[at, position, site.target]) - 1, -1, -1):
        source = attention.index_of(attention.streams[at].reads_from)
        knew = may_read[at][position] & (arrival[source, :, site.target] == layer)
        at, position = source, int(np.flatnonzero(knew)[0])
        path.append((attention.streams[at].name, position))
    return tuple(reversed(path))

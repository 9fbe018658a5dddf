"""Random ragged examples, and the laws that every corruption keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from unmask.core.records import (
    Bits,
    DecoderTarget,
    Ids,
    InputsAndTargets,
    Ints,
    PermutedTarget,
    RowBatch,
    RowClass,
    Spans,
    TokenUnits,
    UnitFlag,
    UnitKind,
)
from unmask.core.rng import Key
from unmask.data.corrupt.protocol import Corruption
from unmask.data.tokenize.vocab import Vocab

CLS, SEP, MASK = 2, 3, 4
ORDINARY = np.arange(10, 5000, dtype=np.int32)
SENTINELS = np.arange(5099, 4999, -1, dtype=np.int32)


@pytest.fixture(scope="session")
def vocab() -> Vocab:
    return Vocab(5100, CLS, SEP, MASK, pad=0, unk=1, ordinary=ORDINARY, sentinels=SENTINELS)


@pytest.fixture(scope="session")
def keys() -> Callable[[int], Key]:
    """A key for so many rows."""
    return lambda rows: Key.of(7, "test").fold_in(np.arange(rows))


@pytest.fixture(scope="session")
def examples() -> st.SearchStrategy[RowBatch]:
    """Batches of ragged rows: special tokens at the ends and in the middle, or none; rows of one free token too."""
    seeds = st.integers(0, 2**32 - 1)
    return st.builds(_random_example, seed=seeds, rows=st.integers(1, 5), longest=st.sampled_from([1, 3, 12, 60]))


@pytest.fixture(scope="session")
def plain() -> Callable[..., RowBatch]:
    """Equal rows `[CLS] text [SEP]` whose tokens are all different, each a word; sentences as asked for."""

    def build(rows: int, free: int, sentences: tuple[int, ...] = ()) -> RowBatch:
        ids = np.tile(np.concatenate([[CLS], ORDINARY[:free], [SEP]]).astype(np.int32), rows)
        bits = np.full((rows, free + 2), UnitFlag.WORD, dtype=np.uint8)
        bits[:, [0, 1, free + 1, *(1 + start for start in sentences)]] |= np.uint8(UnitFlag.BORDER)
        return _example(ids, bits.reshape(-1), np.full(rows, free + 2))

    return build


@pytest.fixture(scope="session")
def pair(plain: Callable[..., RowBatch]) -> Callable[[int, int, int], RowBatch]:
    """Equal rows `[CLS] text [SEP] text [SEP]` with so many free tokens in each text."""

    def build(rows: int, first: int, second: int) -> RowBatch:
        example = plain(rows, first + 1 + second)
        ids = example.ids.copy()
        ids.reshape(rows, -1)[:, first + 1] = SEP
        return replace(example, ids=ids, protected=np.isin(ids, (CLS, SEP)))

    return build


@pytest.fixture(scope="session")
def laws(vocab: Vocab) -> Callable[[Corruption, RowBatch], InputsAndTargets]:
    """Holds one call to what every corruption promises, and returns its instance."""

    def check(part: Corruption, example: RowBatch, words: Vocab = vocab) -> InputsAndTargets:
        key = Key.of(11, "law").fold_in(np.arange(len(example)) * 3)
        untouched = example.ids.copy(), example.units.bits.copy()
        instance = part(example, words, key)
        ids, rows = part.restore(instance, words)
        assert (ids.dtype, ids.tolist(), rows.tolist()) == (np.int32, example.ids.tolist(), example.rows.tolist())
        assert (example.ids == untouched[0]).all()
        assert (example.units.bits == untouched[1]).all()
        assert tuple(type(target) for target in instance.targets) == (*part.target_types, RowClass)
        assert instance.inputs.ids.dtype == np.int32
        for row in range(len(example)):
            _check_row(part, example, words, Key(key.state[row : row + 1]), instance, row)
        return instance

    return check


@pytest.fixture(scope="session")
def alone() -> Callable[[RowBatch, int], RowBatch]:
    """One row of a batch as a batch of its own."""
    return _alone


def _check_row(
    part: Corruption, example: RowBatch, words: Vocab, key: Key, instance: InputsAndTargets, row: int
) -> None:
    """The row is the same when it comes alone, keeps its special tokens, and counts its positions from 0."""
    single = part(_alone(example, row), words, key)
    here = _row(instance, row)
    assert here == _row(single, 0)
    original = example.ids[example.rows[row] : example.rows[row + 1]].tolist()
    assert [i for i in here["ids"] if i in (CLS, SEP)] == [i for i in original if i in (CLS, SEP)]
    assert here["position"] == list(range(len(here["ids"])))
    for end in (0, -1):
        if original[end] in (CLS, SEP):
            assert here["ids"][end] == original[end]


def _row(instance: InputsAndTargets, row: int) -> dict[str, Any]:
    """Everything an instance says about one row, as plain lists."""
    inputs, target = instance.inputs, instance.targets[0]
    here = slice(inputs.rows[row], inputs.rows[row + 1])
    found = {name: getattr(inputs, name)[here].tolist() for name in ("ids", "segment", "document", "position")}
    if isinstance(target, DecoderTarget):
        there = slice(target.rows[row], target.rows[row + 1])
        return found | {"target": target.ids[there].tolist(), "where": target.position[there].tolist()}
    assert isinstance(target, PermutedTarget)
    mine = (target.positions >= here.start) & (target.positions < here.stop)
    places, answers = (target.positions[mine] - here.start).tolist(), target.answers[mine].tolist()
    return found | {"rank": target.rank[here].tolist(), "where": places, "answers": answers}


def _alone(example: RowBatch, row: int) -> RowBatch:
    here = slice(example.rows[row], example.rows[row + 1])
    return replace(
        example,
        ids=example.ids[here],
        segment=example.segment[here],
        document=example.document[here],
        protected=example.protected[here],
        units=TokenUnits(example.units.bits[here]),
        rows=np.array([0, here.stop - here.start]),
        facts={name: value[row : row + 1] for name, value in example.facts.items()},
    )


def _random_example(seed: int, rows: int, longest: int) -> RowBatch:
    random = np.random.default_rng(seed)
    made = [_random_row(random, longest) for _ in range(rows)]
    ids, bits, segment = (np.concatenate([row[part] for row in made]) for part in range(3))
    example = _example(ids, bits, np.array([len(row[0]) for row in made]))
    return replace(example, segment=segment, facts={"next": np.arange(rows)})


def _random_row(random: np.random.Generator, longest: int) -> tuple[Ids, Bits, Bits]:
    """One to three stretches, with or without special tokens before, between and behind them."""
    stretches = [random.integers(1, longest + 1) for _ in range(random.integers(1, 4))]
    ids = [CLS] * random.integers(0, 2)
    segment = [0] * len(ids)
    for number, free in enumerate(stretches):
        ids += [*random.choice(ORDINARY[:300], free), *[SEP] * random.integers(0, 2)]
        segment += [number] * (len(ids) - len(segment))
    spans = {layer: _random_spans(random, len(ids)) for layer in (UnitKind.WORD, UnitKind.PHRASE, UnitKind.SENTENCE)}
    bits = TokenUnits.of(len(ids), spans).bits
    # Rows are cut out of longer texts, so a row need not begin with a word or a sentence.
    bits[: random.integers(0, 2)] = 0
    bits[np.isin(ids, (CLS, SEP))] = UnitFlag.BORDER
    return np.array(ids, np.int32), bits, np.array(segment, np.uint8)


def _random_spans(random: np.random.Generator, length: int) -> Spans:
    cuts = np.unique(random.integers(0, length + 1, size=length // 3 + 2))
    kept = random.random(len(cuts) - 1) < 0.7
    return Spans(cuts[:-1][kept], cuts[1:][kept])


def _example(ids: Ids, bits: Bits, lengths: Ints) -> RowBatch:
    fixed = np.isin(ids, (CLS, SEP))
    zeros = np.zeros(len(ids))
    rows = np.concatenate([[0], np.cumsum(lengths)])
    facts = {"next": np.zeros(len(lengths), np.int64)}
    return RowBatch(ids, zeros.astype(np.uint8), zeros.astype(np.int32), fixed, TokenUnits(bits), rows, facts)

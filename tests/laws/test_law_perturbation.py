"""Law 5, second half: what a pattern hides does not move the outputs of the network, and what it shows does.

A token of a row is exchanged. The reachability proof (`find_leaks`) names every stream and position that the token can
reach through all layers; the states of a tiny network must move there, and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from law_nets import CPU, LENGTH, dry, text, trained_members
from law_subjects import Subject, plan_of, subjects

from unmask.config.attention_pattern import (
    BIDIRECTIONAL_LM,
    CAUSAL,
    FULL,
    PREFIX_LM,
    WITHIN_DOCUMENT,
    XLNET_STREAMS,
    AntiCausal,
    AttentionPattern,
    Causal,
    PredictionSite,
    PrefixLM,
    RowCoordinates,
    SlidingWindow,
    Stream,
    StreamInit,
    WithinDocument,
    find_leaks,
    single_stream,
)
from unmask.config.network import LSTMConfig, NetworkConfig, Norm, TransformerConfig
from unmask.core.ragged import positions_in_rows
from unmask.core.records import Inputs, InputsAndTargets, PermutedTarget
from unmask.nets.backbone import Backbone
from unmask.nets.batch.batch import collate
from unmask.nets.encoder import HiddenStates, init_weights
from unmask.nets.layers.attention import AttentionBackend
from unmask.tasks.recipe import Recipe, Task

DEPTH, VOCAB = 2, 60
TINY = TransformerConfig(
    depth=DEPTH, width=16, heads=2, ffn_width=32, dropout=0.0, attention_dropout=0.0, has_blank_stream=True
)
NETWORKS: dict[str, NetworkConfig] = {"post": TINY, "pre": replace(TINY, norm=Norm.PRE, num_segments=1)}
PATTERNS = {
    "full": FULL,
    "causal": CAUSAL,
    "anti-causal": single_stream(AntiCausal()),
    "prefix": PREFIX_LM,
    "window": single_stream(SlidingWindow(2)),
    "documents": WITHIN_DOCUMENT,
    "two directions": BIDIRECTIONAL_LM,
    "two streams": XLNET_STREAMS,
    "causal window": single_stream(Causal() & SlidingWindow(1)),
    "causal, documents": single_stream(WithinDocument() & Causal()),
    "prefix, documents, window": single_stream(WithinDocument() & PrefixLM() & SlidingWindow(3)),
    "a union": single_stream((Causal() & SlidingWindow(1)) | (WithinDocument() & AntiCausal())),
    "one direction across documents": AttentionPattern(
        (Stream("near", WithinDocument(), "near"), Stream("past", Causal(), "near", StreamInit.BLANK))
    ),
}
BACKENDS = (AttentionBackend.AUTO, AttentionBackend.REFERENCE, AttentionBackend.SDPA, AttentionBackend.LOOP)
ROWS = (9, 1, 12)
RANKS = ([-1, 3, 0, -1, 2, 5, 1, 4, -1], [-1], [-1, 0, 1, 2, -1, 5, 4, 3, -1, 8, 6, 7])
DOCUMENTS = ([0, 0, 0, 0, 1, 1, 1, 2, 2], [0], [0] * 7 + [1] * 5)
PREFIXES = (4, 1, 0)


def network(config: NetworkConfig, vocabulary: int = VOCAB, positions: int = 2 * LENGTH) -> Backbone:
    made = config.build(vocabulary, positions).eval()
    init_weights(made, 0.5, torch.Generator().manual_seed(0))
    return made


def rows() -> InputsAndTargets:
    """Three rows of unequal length with documents, prefixes and a factorization order."""
    offsets = np.array([0, *np.cumsum(ROWS)])
    ids = np.random.default_rng(0).integers(0, VOCAB, offsets[-1]).astype(np.int32)
    document = np.concatenate([np.array(one, dtype=np.int32) for one in DOCUMENTS])
    inputs = Inputs(ids, np.zeros(len(ids), np.uint8), document, positions_in_rows(offsets), offsets)
    rank = np.concatenate([np.array(one, dtype=np.int32) for one in RANKS])
    ordered = np.flatnonzero(rank >= 0)
    return InputsAndTargets(inputs, (PermutedTarget(rank, ordered, ids[ordered]),))


def with_prefixes(instance: InputsAndTargets, attention: AttentionPattern) -> InputsAndTargets:
    """The rows with their prefixes, for a pattern that reads them."""
    if not any("prefix" in stream.rule.coordinates_read() for stream in attention.streams):
        return instance
    return replace(instance, inputs=replace(instance.inputs, prefix=np.array(PREFIXES)))


def states_by_stream(made: Backbone, instance: InputsAndTargets, attention: AttentionPattern) -> list[torch.Tensor]:
    """The last states of every stream of the pattern."""
    with torch.no_grad():
        states: HiddenStates = made(collate(instance, CPU, attention).tokens)
    return [states.stream(stream.name).last_TD for stream in attention.streams]


def exchanged(instance: InputsAndTargets, at: int, vocabulary: int = VOCAB) -> InputsAndTargets:
    """The rows with another token at one place."""
    ids = instance.inputs.ids.copy()
    ids[at] = (ids[at] + 1) % vocabulary
    return replace(instance, inputs=replace(instance.inputs, ids=ids))


def reachable(attention: AttentionPattern, row: RowCoordinates, token: int, depth: int) -> np.ndarray:
    """Where a token of a row arrives within all layers: stream x position."""
    sites = [PredictionSite(one.name, place, token) for one in attention.streams for place in range(len(row))]
    found = {(leak.site.stream, leak.site.read_at) for leak in find_leaks(attention, row, sites, depth=depth)}
    return np.array([[(one.name, at) in found for at in range(len(row))] for one in attention.streams])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_outputs_move_where_the_pattern_lets_a_token_arrive(pattern: str, kind: str, backend: AttentionBackend) -> None:
    attention, made = PATTERNS[pattern], network(NETWORKS[kind])
    for block in made.blocks():
        block.attention.sublayer.backend = backend  # type: ignore[union-attr]
    check_moves(made, with_prefixes(rows(), attention), attention, DEPTH, VOCAB)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_the_directions_of_an_lstm_never_mix() -> None:
    made = network(LSTMConfig(depth=2, direction_width=8, cell_width=16, dropout=0.0))
    check_moves(made, rows(), BIDIRECTIONAL_LM, 2, VOCAB, moves_everywhere=False)


def check_moves(
    made: Backbone,
    instance: InputsAndTargets,
    attention: AttentionPattern,
    depth: int,
    vocabulary: int,
    moves_everywhere: bool = True,
) -> None:
    """Exchange each token of the first and the last row; compare what moves with what the proof says."""
    inputs, before = instance.inputs, states_by_stream(made, instance, attention)
    ranks = [one.rank for one in instance.targets if isinstance(one, PermutedTarget)]
    rank = ranks[0] if ranks else np.full(len(inputs.ids), -1)
    for number in (0, len(inputs.rows) - 2):
        start, end = inputs.rows[number : number + 2].tolist()
        prefix = int(inputs.prefix[number]) if number < len(inputs.prefix) else 0
        row = RowCoordinates.of(
            end - start, prefix=prefix, document=inputs.document[start:end].tolist(), rank=rank[start:end].tolist()
        )
        for token in range(0, end - start, max(1, (end - start) // 6)):
            after = states_by_stream(made, exchanged(instance, start + token, vocabulary), attention)
            moved = np.stack([(one - other).abs().amax(-1).numpy() for one, other in zip(before, after, strict=True)])
            expected = np.zeros_like(moved, dtype=bool)
            expected[:, start:end] = reachable(attention, row, token, depth)
            assert not moved[~expected].any(), "a hidden token moved an output"
            if moves_everywhere:
                assert moved[expected].all(), "a visible token did not move an output"


MEMBERS = [(recipe, task) for recipe in map(dry, trained_members()) for task in recipe.tasks]
"""Every task of every member that can be trained, with the member's own network, made small."""


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(("recipe", "task"), MEMBERS, ids=[f"{one.name}:{task.name}" for one, task in MEMBERS])
def test_the_network_of_every_member_computes_the_pattern_of_its_tasks(recipe: Recipe, task: Task) -> None:
    check_task(task, recipe.network)


RULES = [one for one in subjects() if one.name.startswith("rule:")]


@pytest.mark.parametrize("subject", RULES, ids=lambda subject: subject.name)
def test_a_network_computes_the_pattern_of_every_rule(subject: Subject) -> None:
    check_task(subject.task, replace(TINY, num_segments=max(subject.task.examples.num_segments, 1)))


def check_task(task: Task, config: NetworkConfig) -> None:
    """Two rows of the task through a network of this kind."""
    corpus = text()
    plan = plan_of(task.examples, corpus, LENGTH, 3)
    instance = Subject(task.name, task).batch(corpus, plan, np.arange(2), 3)
    made = network(config, corpus.vocab.size)
    check_moves(made, instance, task.attention, config.depth, corpus.vocab.size, moves_everywhere=False)


def test_states_of_a_query_that_may_read_nothing_are_numbers() -> None:
    """The first of a factorization order, where every token has a place in it, attends to nothing."""
    instance = rows()
    rank = np.concatenate([np.arange(length, dtype=np.int32) for length in ROWS])
    ordered = np.arange(len(rank))
    target = PermutedTarget(rank, ordered, instance.inputs.ids)
    made = network(TINY)
    batch = collate(replace(instance, targets=(target,)), CPU, XLNET_STREAMS)
    states = made(batch.tokens).stream("query").last_TD
    states.square().sum().backward()
    assert states.isfinite().all()
    assert all(one.grad is None or one.grad.isfinite().all() for one in made.parameters())

"""The span boundary objective against a slow reference that is written out token by token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from unmask.config.network import TransformerConfig
from unmask.core.errors import RecipeError
from unmask.core.records import Cloze, Inputs, InputsAndTargets, RowBatch, Spans, TokenUnits, UnitFlag
from unmask.core.rng import Key
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.tokenize.vocab import Vocab
from unmask.members import member
from unmask.nets.batch.batch import collate
from unmask.nets.encoder import HiddenStates
from unmask.objectives.sbo import SBO, find_span_borders

SIZE = 50
TRUNK = TransformerConfig(depth=1, width=16, heads=2, ffn_width=32)
VOCAB = Vocab(SIZE, 1, 2, 3, 0, 4, np.arange(5, SIZE, dtype=np.int32), np.zeros(0, np.int32))


def question(lengths, *spans):
    """Rows of these lengths, and a cloze of these spans in batch positions."""
    rows = np.append(0, np.cumsum(lengths)).astype(np.int64)
    position = np.concatenate([np.arange(length) for length in lengths])
    ids = (np.arange(rows[-1]) * 7 % SIZE).astype(np.int32)
    drawn = Spans.of(*spans)
    places = np.concatenate([np.arange(a, b) for a, b in spans]) if spans else np.zeros(0, np.int64)
    inputs = Inputs(ids, np.zeros(len(ids), np.uint8), np.zeros(len(ids), np.int32), position, rows)
    return InputsAndTargets(inputs, (Cloze(places, ids[places], drawn),))


def drawn_head(sbo, trunk=TRUNK):
    torch.manual_seed(0)
    head = sbo.build_head(trunk.build(SIZE, 64))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    return head


def slowly(head, x_TD, instance, most):
    """Every token of every span, one at a time, as section 3.2 of the paper has it."""
    ids, rows = instance.inputs.ids, instance.inputs.rows.tolist()
    losses = []
    for start, end in merged(instance.targets[0].spans):
        row = max(n for n in range(len(rows) - 1) if rows[n] <= start)
        first, last = rows[row], rows[row + 1] - 1
        if start - 1 == first or end == last:
            continue
        for place, token in enumerate(range(start, min(end, start + most))):
            h0 = torch.cat([x_TD[start - 1], x_TD[end], head.place.weight[place]])
            h1 = F.layer_norm(F.gelu(head.first.dense(h0)), (TRUNK.width,), *norm(head.first))
            y = F.layer_norm(F.gelu(head.second.dense(h1)), head.second.norm.normalized_shape, *norm(head.second))
            logits = head.token.weight @ y + head.bias
            losses.append(-logits.log_softmax(0)[int(ids[token])])
    return losses


def norm(layer):
    return layer.norm.weight, layer.norm.bias, layer.norm.eps


def merged(spans):
    found = []
    for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True):
        if found and found[-1][1] == start:
            found[-1][1] = end
        else:
            found.append([start, end])
    return found


QUESTIONS = [
    question([12], (3, 5), (7, 10)),
    question([12], (1, 3), (5, 6), (9, 11)),  # the first and the last touch the ends of the text
    question([9, 14, 5], (2, 3), (4, 6), (11, 20), (25, 26)),
    question([14], (3, 5), (5, 8), (10, 11)),  # two that touch are one
    question([6], (1, 5)),  # nothing stands between two borders
]


@pytest.mark.parametrize("most", [20, 2])
@pytest.mark.parametrize("embedding", [0, 8])
@pytest.mark.parametrize("instance", QUESTIONS)
def test_loss_and_gradients_are_those_of_the_slow_reference(instance, embedding, most):
    sbo = SBO(position_width=6, max_span_tokens=most)
    head = drawn_head(sbo, replace(TRUNK, embedding_width=embedding))
    x_TD = torch.randn(len(instance.inputs.ids), TRUNK.width, requires_grad=True)
    term = head(HiddenStates((x_TD,)), sbo.prepare(collate(instance)))
    losses = slowly(head, x_TD, instance, most)
    assert term.count == len(losses) == sbo.num_predictions(instance)
    expected = sum(losses, x_TD.sum() * 0)
    assert torch.allclose(term.total, expected, rtol=1e-5, atol=1e-5)
    ours, theirs = (torch.autograd.grad(one, x_TD, retain_graph=True)[0] for one in (term.total, expected))
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_every_right_answer_counts():
    head = drawn_head(SBO(position_width=6))
    instance = QUESTIONS[0]
    with torch.no_grad():
        head.bias.fill_(-1e4)
        head.bias[int(instance.inputs.ids[3])] = 1e4
    term = head(HiddenStates((torch.randn(12, TRUNK.width),)), SBO().prepare(collate(instance)))
    assert (int(term.correct), term.count) == (1, 5)


@given(st.lists(st.integers(4, 30), min_size=1, max_size=5), st.integers(0, 1000), st.integers(1, 4))
def test_what_is_asked_has_its_borders_inside_its_row(lengths, seed, most):
    rng = np.random.default_rng(seed)
    rows = np.append(0, np.cumsum(lengths))
    hidden = rng.random(rows[-1]) < 0.4
    hidden[rows[:-1]] = hidden[rows[1:] - 1] = False
    edges = np.flatnonzero(np.diff(np.concatenate([[0], hidden.astype(int), [0]])))
    found = find_span_borders(Spans(edges[::2], edges[1::2]), rows, most)
    places = np.flatnonzero(hidden)
    row = np.searchsorted(rows, found.left, side="right") - 1
    assert not hidden[found.left].any()
    assert not hidden[found.right].any()
    assert (found.left > rows[row]).all()
    assert (found.right < rows[row + 1] - 1).all()
    assert (places[found.target_index] == found.left + 1 + found.offset).all()
    assert (found.offset < most).all()


def test_its_head_is_one_of_the_paper():
    sbo = SBO()
    head = sbo.build_head(replace(TRUNK, width=32, heads=4).build(SIZE, 64))
    assert head.place.weight.shape == (20, 200)
    assert head.first.dense.weight.shape == (32, 2 * 32 + 200)
    assert head.second.dense.weight.shape == (32, 32)
    assert sum(one.numel() for name, one in head.named_parameters() if not name.startswith("token")) == (
        20 * 200 + (264 * 32 + 32 + 64) + (32 * 32 + 32 + 64) + SIZE
    )


def test_numbers_that_cannot_work_are_refused():
    with pytest.raises(RecipeError, match="at least 1 token of a span; found 200 and 0"):
        SBO(max_span_tokens=0)


def test_spans_of_the_member_never_touch_and_its_borders_are_in_sight():
    rng = np.random.default_rng(3)
    lengths = rng.integers(10, 120, 40)
    rows = np.append(0, np.cumsum(lengths))
    bits = np.where(rng.random(rows[-1]) < 0.6, np.uint8(UnitFlag.WORD), np.uint8(0))
    fixed = np.zeros(rows[-1], dtype=np.bool_)
    fixed[rows[:-1]] = fixed[rows[1:] - 1] = True
    bits[fixed] = bits[rows[:-1] + 1] = UnitFlag.BORDER
    ids = rng.integers(5, SIZE, rows[-1]).astype(np.int32)
    plain = np.zeros(rows[-1], np.int32)
    example = RowBatch(ids, plain.astype(np.uint8), plain, fixed, TokenUnits(bits), rows)
    corrupt = member("spanbert").tasks[0].corruption
    assert isinstance(corrupt, MaskTokens)
    for visit in range(20):
        instance = corrupt(example, VOCAB, Key.of(visit).fold_in(np.arange(len(lengths))))
        spans = instance.targets[0].spans
        assert (spans.end[:-1] < spans.start[1:]).all()
        found = find_span_borders(spans, rows, 20)
        hidden = np.isin(np.arange(rows[-1]), instance.targets[0].positions)
        assert len(found.offset) > 0
        assert not hidden[found.left].any()
        assert not hidden[found.right].any()

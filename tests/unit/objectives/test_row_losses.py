"""Losses about whole rows and groups of rows, against the same sums written out with loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from unmask.errors import UserError
from unmask.nets.batch import collate
from unmask.nets.reading import ReadOut
from unmask.nets.transformer import States
from unmask.nets.trunk import Trunk
from unmask.objectives.heads import row_head_of
from unmask.ragged import offsets, within
from unmask.records import Among, Inputs, Instance, Labels, Target
from unmask.tune.judge import Judge, Pick, Rate, Tick

TRUNK = Trunk(depth=1, width=8, heads=2, inner=16, dropout=0.0)
ROWS = offsets(np.array([3, 1, 5, 2, 4, 2, 1]))
TOKEN = torch.nn.Embedding(9, 8)
GROUPS = np.array([0, 3, 5, 6, 7])


def instance(*targets: Target) -> Instance:
    count = int(ROWS[-1])
    zeros = np.zeros(count, dtype=np.int32)
    return Instance(Inputs(zeros, zeros.astype(np.uint8), zeros, within(ROWS), ROWS), targets)


def states() -> States:
    return States((torch.randn(int(ROWS[-1]), 8, generator=torch.Generator().manual_seed(3), requires_grad=True),))


def head_of(objective):
    torch.manual_seed(7)
    return objective.head(TRUNK, TOKEN)


@pytest.mark.parametrize("read", ReadOut)
def test_labels_cost_their_binary_cross_entropy_summed_over_a_row(read):
    value = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [0, 0, 1]], dtype=np.uint8)
    objective, shown = Tick(3, "topics", read=read), instance(Labels("topics", value))
    head, said = head_of(objective), states()
    term = head(said, collate(shown))
    logits = head.logits(said, collate(shown))[:5]  # the last two rows belong to another objective
    truth = torch.from_numpy(value).float()
    rows = [
        F.binary_cross_entropy(row.sigmoid(), told, reduction="sum") for row, told in zip(logits, truth, strict=True)
    ]
    torch.testing.assert_close(term.total, torch.stack(rows).sum())
    assert term.count == objective.asked(shown) == 5
    assert term.right == sum(
        ((row.sigmoid() >= 0.5) == told.bool()).all() for row, told in zip(logits, truth, strict=True)
    )


def test_one_right_row_a_group_is_the_cross_entropy_of_multiple_choice():
    value = np.array([0, 1, 0, 1, 0, 1, 1.0])
    objective, shown = Pick("choose"), instance(Among("choose", GROUPS, value))
    head, said = head_of(objective), states()
    term = head(said, collate(shown))
    scores = head.logits(said, collate(shown)).squeeze(-1)
    costs = [F.cross_entropy(scores[0:3], torch.tensor(1)), F.cross_entropy(scores[3:5], torch.tensor(0))]
    torch.testing.assert_close(term.total, torch.stack(costs).sum())  # with one choice alone nothing is to be learned
    assert term.count == objective.asked(shown) == 4
    assert term.right == int(scores[0:3].argmax() == 1) + int(scores[3:5].argmax() == 0) + 2


@pytest.mark.parametrize("bounded", [False, True])
def test_each_relevant_candidate_competes_with_the_irrelevant_ones_only(bounded):
    value = np.array([2, 1, 0, 0, 0, 1, 0.0])  # two relevant ones, none, only one, none
    objective, shown = Pick("rank", bounded=bounded), instance(Among("rank", GROUPS, value))
    head, said = head_of(objective), states()
    term = head(said, collate(shown))
    raw = head.logits(said, collate(shown)).squeeze(-1)
    scores = raw.sigmoid() if bounded else raw
    costs = [-torch.log_softmax(scores[[place, 2]], 0)[0] for place in (0, 1)]
    torch.testing.assert_close(term.total, torch.stack(costs).sum())
    assert term.count == objective.asked(shown) == 3
    assert term.right == int(scores[0] > scores[2]) + int(scores[1] > scores[2]) + 1
    term.total.backward()
    assert said.last_TD.grad.isfinite().all()
    groups = said.last_TD.grad.split(np.diff(ROWS).tolist())
    assert [bool(row.any()) for row in groups] == [True, True, True, False, False, False, False]


def test_groups_that_teach_nothing_alone_cost_nothing():
    shown = instance(Among("rank", GROUPS, np.zeros(7)))
    term = head_of(Pick("rank"))(states(), collate(shown))
    assert (term.total.item(), term.right.item(), term.count) == (0.0, 0, 0)


def test_what_reads_the_first_token_can_be_written_as_a_class_of_bert_and_nothing_else():
    for objective in (Judge(4), Rate(), Tick(3), Pick()):
        assert objective.first_only
        assert set(row_head_of(head_of(objective)).state_dict()) == {
            "pool.weight",
            "pool.bias",
            "classify.weight",
            "classify.bias",
        }
    assert not Judge(4, read=ReadOut.MEAN).first_only
    with pytest.raises(UserError, match="--read first"):
        row_head_of(head_of(Judge(4, read=ReadOut.MEAN)))

"""Losses about whole rows and groups of rows, against the same sums written out with loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from unmask.config.network import TransformerConfig
from unmask.config.pooling import Pooling
from unmask.core.errors import UserError
from unmask.core.ragged import offsets, positions_in_rows
from unmask.core.records import CandidateGroups, Inputs, InputsAndTargets, RowMultiLabel, Target
from unmask.nets.batch.batch import collate
from unmask.nets.encoder import HiddenStates
from unmask.objectives.heads.common import pooler_of
from unmask.objectives.row_tasks import Classification, MultiLabel, Ranking, Regression

TRUNK = TransformerConfig(depth=1, width=8, heads=2, ffn_width=16, dropout=0.0)
ROWS = offsets(np.array([3, 1, 5, 2, 4, 2, 1]))
GROUPS = np.array([0, 3, 5, 6, 7])


def instance(*targets: Target) -> InputsAndTargets:
    count = int(ROWS[-1])
    zeros = np.zeros(count, dtype=np.int32)
    return InputsAndTargets(Inputs(zeros, zeros.astype(np.uint8), zeros, positions_in_rows(ROWS), ROWS), targets)


def states() -> HiddenStates:
    return HiddenStates(
        (torch.randn(int(ROWS[-1]), 8, generator=torch.Generator().manual_seed(3), requires_grad=True),)
    )


def head_of(objective):
    torch.manual_seed(7)
    return objective.build_head(TRUNK.build(3, 64))


@pytest.mark.parametrize("read", Pooling)
def test_labels_cost_their_binary_cross_entropy_summed_over_a_row(read):
    value = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [0, 0, 1]], dtype=np.uint8)
    objective, shown = MultiLabel(3, "topics", pooling=read), instance(RowMultiLabel("topics", value))
    head, said = head_of(objective), states()
    term = head(said, collate(shown))
    logits = head.logits(said, collate(shown))[:5]  # the last two rows belong to another objective
    truth = torch.from_numpy(value).float()
    rows = [
        F.binary_cross_entropy(row.sigmoid(), told, reduction="sum") for row, told in zip(logits, truth, strict=True)
    ]
    torch.testing.assert_close(term.total, torch.stack(rows).sum())
    assert term.count == objective.num_predictions(shown) == 5
    assert term.correct == sum(
        ((row.sigmoid() >= 0.5) == told.bool()).all() for row, told in zip(logits, truth, strict=True)
    )


def test_one_right_row_a_group_is_the_cross_entropy_of_multiple_choice():
    value = np.array([0, 1, 0, 1, 0, 1, 1.0])
    objective, shown = Ranking("choose"), instance(CandidateGroups("choose", GROUPS, value))
    head, said = head_of(objective), states()
    term = head(said, collate(shown))
    scores = head.logits(said, collate(shown)).squeeze(-1)
    costs = [F.cross_entropy(scores[0:3], torch.tensor(1)), F.cross_entropy(scores[3:5], torch.tensor(0))]
    torch.testing.assert_close(term.total, torch.stack(costs).sum())  # with one choice alone nothing is to be learned
    assert term.count == objective.num_predictions(shown) == 4
    assert term.correct == int(scores[0:3].argmax() == 1) + int(scores[3:5].argmax() == 0) + 2


@pytest.mark.parametrize("bounded", [False, True])
def test_each_relevant_candidate_competes_with_the_irrelevant_ones_only(bounded):
    value = np.array([2, 1, 0, 0, 0, 1, 0.0])  # two relevant ones, none, only one, none
    objective, shown = Ranking("rank", bounded=bounded), instance(CandidateGroups("rank", GROUPS, value))
    head, said = head_of(objective), states()
    term = head(said, collate(shown))
    raw = head.logits(said, collate(shown)).squeeze(-1)
    scores = raw.sigmoid() if bounded else raw
    costs = [-torch.log_softmax(scores[[place, 2]], 0)[0] for place in (0, 1)]
    torch.testing.assert_close(term.total, torch.stack(costs).sum())
    assert term.count == objective.num_predictions(shown) == 3
    assert term.correct == int(scores[0] > scores[2]) + int(scores[1] > scores[2]) + 1
    term.total.backward()
    assert said.last_TD.grad.isfinite().all()
    groups = said.last_TD.grad.split(np.diff(ROWS).tolist())
    assert [bool(row.any()) for row in groups] == [True, True, True, False, False, False, False]


def test_groups_that_teach_nothing_alone_cost_nothing():
    shown = instance(CandidateGroups("rank", GROUPS, np.zeros(7)))
    term = head_of(Ranking("rank"))(states(), collate(shown))
    assert (term.total.item(), term.correct.item(), term.count) == (0.0, 0, 0)


def test_what_reads_the_first_token_can_be_written_as_a_class_of_bert_and_nothing_else():
    for objective in (Classification(4), Regression(), MultiLabel(3), Ranking()):
        assert objective.first_only
        assert set(pooler_of(head_of(objective)).state_dict()) == {
            "pool.weight",
            "pool.bias",
            "classify.weight",
            "classify.bias",
        }
    assert not Classification(4, pooling=Pooling.MEAN).first_only
    with pytest.raises(UserError, match="--pooling first"):
        pooler_of(head_of(Classification(4, pooling=Pooling.MEAN)))

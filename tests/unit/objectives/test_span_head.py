"""The head that points at an answer: its loss is BERT's, row by row."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import BertConfig, BertForQuestionAnswering
from transformers.modeling_outputs import BaseModelOutput

from unmask.config.network import TransformerConfig
from unmask.core.records import AnswerSpan, Inputs, InputsAndTargets
from unmask.nets.batch.batch import collate
from unmask.nets.encoder import HiddenStates
from unmask.objectives.heads.row_tasks import SpanHead

TRUNK = TransformerConfig(depth=1, width=16, heads=2, ffn_width=32)
LENGTHS = (5, 9, 3)
START, END = np.array([2, 7, 0]), np.array([4, 7, 0])  # inside the rows; the last row holds no answer


def batch_of(rows=3):
    offsets = np.append(0, np.cumsum(LENGTHS))
    total = int(offsets[-1])
    position = np.concatenate([np.arange(length) for length in LENGTHS])
    zeros = np.zeros(total, dtype=np.int32)
    inputs = Inputs(zeros, zeros.astype(np.uint8), zeros, position, offsets)
    begin = offsets[:rows]
    return collate(InputsAndTargets(inputs, (AnswerSpan("span", begin + START[:rows], begin + END[:rows]),)))


def drawn():
    torch.manual_seed(0)
    head, states_TD = SpanHead(TRUNK, "span"), torch.randn(sum(LENGTHS), TRUNK.width, requires_grad=True)
    return head, states_TD


def test_the_loss_is_the_mean_of_two_softmaxes_over_the_tokens_of_each_row():
    head, states_TD = drawn()
    term = head(HiddenStates((states_TD,)), batch_of())
    total = 0.0
    for row_LD, start, end in zip(states_TD.split(LENGTHS), START, END, strict=True):
        scores_L2 = head.classify(row_LD)
        total += (
            F.cross_entropy(scores_L2[:, 0], torch.tensor(start)) + F.cross_entropy(scores_L2[:, 1], torch.tensor(end))
        ) / 2
    assert term.count == 3
    torch.testing.assert_close(term.total, total)
    term.total.backward()
    assert states_TD.grad.isfinite().all()


def test_the_loss_is_that_of_transformers():
    head, states_TD = drawn()
    theirs = BertForQuestionAnswering(
        BertConfig(vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    )
    theirs.qa_outputs.load_state_dict(head.classify.state_dict())
    theirs.bert.forward = lambda *_, **__: BaseModelOutput(states_TD[:5][None])
    loss = theirs(
        input_ids=torch.zeros(1, 5, dtype=torch.long),
        start_positions=torch.tensor([2]),
        end_positions=torch.tensor([4]),
    ).loss
    ours = head(HiddenStates((states_TD,)), batch_of(rows=1))
    torch.testing.assert_close(ours.total, loss)
    assert ours.count == 1  # rows after those that are asked about belong to others


@pytest.mark.parametrize(("wrong_end", "right"), [(False, 3), (True, 2)])
def test_a_row_is_right_if_both_ends_are(wrong_end, right):
    head, _ = drawn()
    states_TD = torch.zeros(sum(LENGTHS), TRUNK.width)
    offsets = np.append(0, np.cumsum(LENGTHS))[:-1]
    ends = END - (np.array([1, 0, 0]) if wrong_end else 0)
    states_TD[offsets + START, 0] = 1.0
    states_TD[offsets + ends, 1] = 1.0
    with torch.no_grad():
        head.classify.weight.zero_()
        head.classify.weight[0, 0] = head.classify.weight[1, 1] = 1.0
    assert int(head(HiddenStates((states_TD,)), batch_of()).correct) == right

"""Heads for tags: the losses of single words and of whole rows, against what they are defined as."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from unmask.config.network import TransformerConfig
from unmask.core.ragged import positions_in_rows
from unmask.core.records import Inputs, InputsAndTargets, TokenLabels
from unmask.finetuning.data.tagging.schemes import TagScheme, allowed_transitions
from unmask.finetuning.data.tagging.sentences import Tagging
from unmask.nets.batch.batch import collate
from unmask.nets.encoder import HiddenStates, init_weights
from unmask.objectives.heads.tagging import TRANSITION_LR_SCALE, CRFHead, TokenClassificationHead

TRUNK = TransformerConfig(depth=1, width=8, heads=2, ffn_width=16)
LABELS = ("O", "B-X", "I-X")
ROWS = np.array([0, 5, 8, 10])
PLACES, TRUTH = np.array([1, 2, 3, 6, 9]), np.array([0, 1, 2, 1, 0])
BY_ROW = ((0, 3), (3, 4), (4, 5))


def instance_of(places=PLACES, truth=TRUTH) -> InputsAndTargets:
    count = int(ROWS[-1])
    inputs = Inputs(
        np.zeros(count, np.int32), np.zeros(count, np.uint8), np.zeros(count, np.int32), positions_in_rows(ROWS), ROWS
    )
    return InputsAndTargets(inputs, (TokenLabels("tag", places, truth),))


def states_of(width: int = TRUNK.width) -> HiddenStates:
    return HiddenStates((torch.randn(int(ROWS[-1]), width, generator=torch.Generator().manual_seed(1)),))


def head_of(crf: bool) -> TokenClassificationHead | CRFHead:
    head = Tagging(LABELS, TagScheme.BIO, crf).build_head(TRUNK.build(3, 64))
    init_weights(head, 0.5, torch.Generator().manual_seed(2))
    return head.eval()


def test_the_loss_of_single_words_is_their_cross_entropy():
    head, states, batch = head_of(crf=False), states_of(), collate(instance_of())
    term = head(states, batch)
    logits = head.classify(states.last_TD)
    wanted = sum(-torch.log_softmax(logits[place], -1)[truth] for place, truth in zip(PLACES, TRUTH, strict=True))
    assert term.total.item() == pytest.approx(wanted.item())
    assert term.count == Tagging(LABELS, TagScheme.BIO).num_predictions(instance_of()) == 5
    assert term.correct == sum(int(logits[p].argmax()) == t for p, t in zip(PLACES, TRUTH, strict=True))
    assert torch.equal(head.logits(states, batch), logits)


def test_the_loss_of_rows_is_the_likelihood_of_their_paths():
    head, states, batch = head_of(crf=True), states_of(), collate(instance_of())
    with torch.no_grad():
        for parameter in (head.first, head.follow, head.last):
            parameter.copy_(
                torch.randn(len(parameter), generator=torch.Generator().manual_seed(3)) / TRANSITION_LR_SCALE
            )
    term, steps = head(states, batch), head.transitions
    scores = head.classify(states.last_TD[PLACES])

    def score(path, first):
        inner = sum(steps.transition_CC[a, b] for a, b in pairwise(path))
        said = sum(scores[first + place, one] for place, one in enumerate(path))
        return steps.start_C[path[0]] + said + inner + steps.end_C[path[-1]]

    lost = torch.tensor(0.0)
    for first, last in BY_ROW:
        every = torch.stack([score(path, first) for path in product(range(3), repeat=last - first)])
        lost = lost + every.logsumexp(0) - score(tuple(TRUTH[first:last].tolist()), first)
    assert term.total.item() == pytest.approx(lost.item(), rel=1e-5)
    assert term.count == 5


def test_what_a_crf_says_keeps_the_rules_and_its_loss_survives_a_truth_that_breaks_them():
    head = head_of(crf=True)
    with torch.no_grad():
        head.classify.weight.zero_()
        head.classify.bias.copy_(torch.tensor([0.0, 1.0, 9.0]))  # I-X everywhere, which no row may begin with
    truth = np.array([1, 2, 2, 1, 1])
    assert head(states_of(), collate(instance_of(truth=truth))).correct == 5
    broken = head(states_of(), collate(instance_of(truth=np.full(5, 2))))
    assert broken.total.isfinite()
    broken.total.backward()
    assert all(parameter.grad.isfinite().all() for parameter in head.parameters())


@pytest.mark.parametrize("crf", [False, True])
def test_rows_do_not_know_each_other(crf):
    """The loss of a batch is the sum of the losses of its rows."""
    head, states = head_of(crf), states_of()
    whole = head(states, collate(instance_of())).total
    parts = [head(states, collate(instance_of(PLACES[a:b], TRUTH[a:b]))).total for a, b in BY_ROW]
    assert whole.item() == pytest.approx(sum(part.item() for part in parts), rel=1e-5)


def test_steps_begin_at_nothing_and_rules_are_no_weights():
    head = CRFHead(TRUNK, "tag", *allowed_transitions(LABELS, TagScheme.BIO))
    init_weights(head, 0.5, torch.Generator().manual_seed(2))
    assert not any(part.any() for part in head.transitions.tensors)
    assert set(head.state_dict()) == {"classify.weight", "classify.bias", "first", "follow", "last"}

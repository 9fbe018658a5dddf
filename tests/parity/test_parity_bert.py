"""BERT against transformers' BertForPreTraining: states, logits, loss and gradients of the same weights."""

import pytest
import torch
from parity_nets import SHAPES, asked, drawn, theirs

from unmask.config.model_type import ModelType
from unmask.core.records import Cloze, RowClass, Spans
from unmask.interop.hf.lookup import weight_table_for
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.nets.batch.batch import Batch
from unmask.nets.batch.packed_sequences import unpad
from unmask.objectives.heads.common import MLMHead, RowClassHead

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
FULL = Architecture(ModelType.BERT, HFTask.PRE_TRAINING)
SIZES = SHAPES[ModelType.BERT]


@pytest.fixture(scope="module", params=sorted(SIZES))
def pair(request):
    """The same weights on both sides."""
    model = drawn(SIZES[request.param])
    return model, theirs(model, FULL)


def our_loss(model, question):
    """The mean cloze loss and the mean loss of the rows, through the heads that training uses."""
    cloze = Cloze(question.positions, question.answers, Spans.of())
    batch = Batch(question.tokens, question.first, (cloze, RowClass("next", question.follows)))
    say_tokens, say_fact = MLMHead(model.config, model.network.embed.token), RowClassHead(model.config, "next", 2)
    say_tokens.lm_head, say_fact.row_head = model.lm_head, model.row_head
    states = model.network(question.tokens)
    return sum(term.total / term.count for term in (say_tokens(states, batch), say_fact(states, batch)))


def test_hidden_states_of_all_layers_agree(pair):
    ours, other = pair
    question = asked()
    with torch.no_grad():
        mine = ours.network(question.tokens).layers
        known = other(**question.padded(), output_hidden_states=True).hidden_states
    assert len(mine) == len(known) == ours.config.depth + 1
    for number, (one, grid) in enumerate(zip(mine, known, strict=True)):
        assert torch.allclose(one, unpad(grid, question.tokens.sequences), atol=1e-5, rtol=0), f"layer {number}"


def test_logits_of_both_heads_agree(pair):
    ours, other = pair
    question = asked()
    with torch.no_grad():
        last = ours.network(question.tokens).last_TD
        known = other(**question.padded())
        assert torch.allclose(
            ours.lm_head(last), unpad(known.prediction_logits, question.tokens.sequences), atol=1e-5, rtol=0
        )
        assert torch.allclose(ours.row_head(last[question.first]), known.seq_relationship_logits, atol=1e-5, rtol=0)


def test_loss_and_every_gradient_agree(pair):
    ours, other = pair
    question = asked()
    ours.zero_grad()
    other.zero_grad()
    mine, known = our_loss(ours, question), other(**question.padded()).loss
    assert abs(mine.item() - known.item()) < 1e-5
    mine.backward()
    known.backward()
    gradients = {name: parameter.grad for name, parameter in ours.named_parameters(remove_duplicate=False)}
    renamed = weight_table_for(FULL, ours.config).to_hf(gradients)
    expected = {name: parameter.grad for name, parameter in other.named_parameters()}
    assert renamed.keys() == expected.keys()
    for name, gradient in expected.items():
        allowed = min(1e-4, 1e-6 + 1e-4 * gradient.abs().max())
        assert (renamed[name] - gradient).abs().max() <= allowed, name


def test_one_step_of_the_same_optimizer_keeps_them_together():
    """What gradients that agree are good for: after a step both still say the same."""
    ours = drawn(SIZES["tiny"])
    other, question = theirs(ours, FULL), asked()
    for network, loss in ((ours, our_loss(ours, question)), (other, other(**question.padded()).loss)):
        loss.backward()
        torch.optim.SGD(network.parameters(), lr=0.5).step()
    with torch.no_grad():
        mine, known = our_loss(ours, question), other(**question.padded()).loss
    assert abs(mine.item() - known.item()) < 1e-5

"""Every class of every dialect against transformers: states of all layers, outputs, and the losses of pre-training."""

import pytest
import torch
import torch.nn.functional as F
from parity_nets import EVERY_SIZE, SHAPES, asked, drawn, drawn_for, theirs

from unmask.config.model_type import ModelType
from unmask.core.records import Cloze, ReplacedTokens, RowClass, Spans
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.reference_outputs import LAST_HIDDEN_STATE, max_difference, model_outputs, to_padded_inputs
from unmask.nets.batch.batch import Batch
from unmask.nets.batch.packed_sequences import pad
from unmask.objectives.heads.common import MLMHead, RowClassHead
from unmask.objectives.heads.electra import RTDHead
from unmask.objectives.rtd import JudgedTokens

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
NEAR = 1e-5


@pytest.mark.parametrize(("architecture", "size"), EVERY_SIZE, ids=str)
def test_states_and_outputs_agree(architecture, size):
    model = drawn_for(architecture, size)
    question = asked(model.config)
    tokens = question.tokens
    shown = to_padded_inputs(tokens, architecture)
    shown["input_ids"] = question.inputs()["input_ids"].view_as(shown["input_ids"])
    with torch.no_grad():
        known = theirs(model, architecture)(**shown, output_hidden_states=True)
        states = {str(number): state for number, state in enumerate(model.network(tokens).layers)}
    said = {
        name: value for name, value in model_outputs(model, tokens, architecture).items() if name != LAST_HIDDEN_STATE
    }
    assert len(known.hidden_states) == len(states) == model.config.depth + 1
    assert (
        max_difference(states, {str(n): state for n, state in enumerate(known.hidden_states)}, tokens.sequences) < NEAR
    )
    assert max_difference(said, known, tokens.sequences) < NEAR
    bare = architecture == Architecture(
        ModelType.ELECTRA, HFTask.ENCODER
    )  # the one class without anything on the trunk
    assert bool(said) is not bare


def cloze_loss(model, question):
    """The mean loss of a cloze, through the head that training uses."""
    say = MLMHead(model.config, model.network.embed.token)
    say.lm_head = model.lm_head
    cloze = Cloze(question.positions, question.answers, Spans.of())
    term = say(model.network(question.tokens), Batch(question.tokens, question.first, (cloze,)))
    return term.total / term.count


@pytest.mark.parametrize("size", ["tiny", "mini"])
@pytest.mark.parametrize("dialect", ModelType)
def test_the_loss_of_a_cloze_agrees(dialect, size):
    """For ELECTRA, this is the generator."""
    architecture = Architecture(dialect, HFTask.MASKED_LM)
    model = drawn_for(architecture, size)
    question = asked(model.config)
    with torch.no_grad():
        known = theirs(model, architecture)(**question.inputs(), labels=question.labels()).loss
        assert abs(cloze_loss(model, question) - known) < NEAR


@pytest.mark.parametrize("size", ["tiny", "mini"])
def test_the_loss_of_albert_agrees_the_order_included(size):
    """Their label 0 is ours: in order. Were it the other way round, the losses would differ."""
    model = drawn(SHAPES[ModelType.ALBERT][size]).eval()
    other, question = theirs(model, Architecture(ModelType.ALBERT, HFTask.PRE_TRAINING)), asked(model.config)
    say = RowClassHead(model.config, "order", 2)
    say.row_head = model.row_head
    batch = Batch(question.tokens, question.first, (RowClass("order", question.follows),))
    with torch.no_grad():
        term = say(model.network(question.tokens), batch)
        mine = cloze_loss(model, question) + term.total / term.count
        known = other(**question.inputs(), labels=question.labels(), sentence_order_label=question.follows).loss
        swapped = other(**question.inputs(), labels=question.labels(), sentence_order_label=1 - question.follows).loss
    assert abs(mine - known) < NEAR
    assert abs(mine - swapped) > 1e-3


@pytest.mark.parametrize("size", ["tiny", "mini"])
def test_the_loss_of_electra_agrees(size):
    architecture = Architecture(ModelType.ELECTRA, HFTask.DISCRIMINATOR)
    model = drawn_for(architecture, size)
    question = asked(model.config)
    tokens, replaced = question.tokens, (question.tokens.ids_T % 3 == 0)
    say = RTDHead(model.config, JudgedTokens.ALL)
    say.discriminator_head = model.discriminator_head
    batch = Batch(tokens, question.first, (ReplacedTokens(replaced, question.positions),))
    with torch.no_grad():
        states = model.network(tokens)
        term = say(states, batch)
        plain = F.binary_cross_entropy_with_logits(model.discriminator_head(states.last_TD), replaced.float())
        known = theirs(model, architecture)(**question.inputs(), labels=pad(replaced.long(), tokens.sequences)).loss
    assert abs(term.total / term.count - known) < NEAR
    assert abs(plain - known) < NEAR

"""Every class of every dialect against transformers: states of all layers, outputs, and the losses of pre-training."""

import pytest
import torch
import torch.nn.functional as F
from parity_nets import EVERY_SIZE, SHAPES, asked, drawn, drawn_for, theirs

from unmask.dialect import Dialect
from unmask.export.architecture import Architecture, Purpose
from unmask.export.outputs import LAST, apart, our_outputs, padded
from unmask.nets.answers import ClozeAnswers, FactAnswers, ReplacedAnswers
from unmask.nets.batch import Batch
from unmask.nets.layout import to_grid
from unmask.objectives.after_guess import SayReplaced
from unmask.objectives.heads import SayFact, SayTokens
from unmask.objectives.replaced import Where
from unmask.records import Spans

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
NEAR = 1e-5


@pytest.mark.parametrize(("architecture", "size"), EVERY_SIZE, ids=str)
def test_states_and_outputs_agree(architecture, size):
    model = drawn_for(architecture, size)
    question = asked(model.shape)
    tokens = question.tokens
    shown = padded(tokens, architecture)
    shown["input_ids"] = question.inputs()["input_ids"].view_as(shown["input_ids"])
    with torch.no_grad():
        known = theirs(model, architecture)(**shown, output_hidden_states=True)
        states = {str(number): state for number, state in enumerate(model.trunk(tokens).layers)}
    said = {name: value for name, value in our_outputs(model, tokens, architecture).items() if name != LAST}
    assert len(known.hidden_states) == len(states) == model.shape.depth + 1
    assert apart(states, {str(n): state for n, state in enumerate(known.hidden_states)}, tokens.borders) < NEAR
    assert apart(said, known, tokens.borders) < NEAR
    bare = architecture == Architecture(Dialect.ELECTRA, Purpose.ENCODER)  # the one class without anything on the trunk
    assert bool(said) is not bare


def cloze_loss(model, question):
    """The mean loss of a cloze, through the head that training uses."""
    say = SayTokens(model.shape, model.trunk.embed.token)
    say.tokens = model.tokens
    cloze = ClozeAnswers(question.positions, question.answers, Spans.of())
    term = say(model.trunk(question.tokens), Batch(question.tokens, question.first, (cloze,)))
    return term.total / term.count


@pytest.mark.parametrize("size", ["tiny", "mini"])
@pytest.mark.parametrize("dialect", Dialect)
def test_the_loss_of_a_cloze_agrees(dialect, size):
    """For ELECTRA, this is the generator."""
    architecture = Architecture(dialect, Purpose.MASKED_LM)
    model = drawn_for(architecture, size)
    question = asked(model.shape)
    with torch.no_grad():
        known = theirs(model, architecture)(**question.inputs(), labels=question.labels()).loss
        assert abs(cloze_loss(model, question) - known) < NEAR


@pytest.mark.parametrize("size", ["tiny", "mini"])
def test_the_loss_of_albert_agrees_the_order_included(size):
    """Their label 0 is ours: in order. Were it the other way round, the losses would differ."""
    model = drawn(SHAPES[Dialect.ALBERT][size]).eval()
    other, question = theirs(model, Architecture(Dialect.ALBERT, Purpose.PRE_TRAINING)), asked(model.shape)
    say = SayFact(model.shape, "order", 2)
    say.row = model.row
    batch = Batch(question.tokens, question.first, (FactAnswers("order", question.follows),))
    with torch.no_grad():
        term = say(model.trunk(question.tokens), batch)
        mine = cloze_loss(model, question) + term.total / term.count
        known = other(**question.inputs(), labels=question.labels(), sentence_order_label=question.follows).loss
        swapped = other(**question.inputs(), labels=question.labels(), sentence_order_label=1 - question.follows).loss
    assert abs(mine - known) < NEAR
    assert abs(mine - swapped) > 1e-3


@pytest.mark.parametrize("size", ["tiny", "mini"])
def test_the_loss_of_electra_agrees(size):
    architecture = Architecture(Dialect.ELECTRA, Purpose.DISCRIMINATOR)
    model = drawn_for(architecture, size)
    question = asked(model.shape)
    tokens, replaced = question.tokens, (question.tokens.ids_T % 3 == 0)
    say = SayReplaced(model.shape, Where.ALL)
    say.replaced = model.replaced
    batch = Batch(tokens, question.first, (ReplacedAnswers(replaced, question.positions),))
    with torch.no_grad():
        states = model.trunk(tokens)
        term = say(states, batch)
        plain = F.binary_cross_entropy_with_logits(model.replaced(states.last_TD), replaced.float())
        known = theirs(model, architecture)(**question.inputs(), labels=to_grid(replaced.long(), tokens.borders)).loss
    assert abs(term.total / term.count - known) < NEAR
    assert abs(plain - known) < NEAR

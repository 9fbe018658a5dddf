"""The answer module against its equations, written out with plain loops over rows, words and steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unmask.config.network import TransformerConfig
from unmask.core.ragged import positions_in_rows
from unmask.core.records import Inputs, InputsAndTargets, RowClass
from unmask.nets.batch.batch import collate
from unmask.nets.encoder import HiddenStates
from unmask.objectives.heads.san import AnswerModule, SANHead, text_masks, vote_dropout

CLS, SEP, WIDTH, CLASSES = 2, 3, 6, 3
ROWS = (([11, 12, 13], [21, 22]), ([14], [23, 24, 25, 26]), ([15, 16, 17, 18], [27]))
TRUNK = TransformerConfig(depth=1, width=WIDTH, heads=2, ffn_width=8, dropout=0.0)


def batch_of(rows=ROWS, segments=2, truths=(0, 2, 1)):
    ids = [np.array([CLS, *one, SEP, *other, SEP]) for one, other in rows]
    parts = [np.repeat([0, segments - 1], [len(one) + 2, len(other) + 1]) for one, other in rows]
    begin = np.append(0, np.cumsum([len(row) for row in ids]))
    flat = np.concatenate(ids).astype(np.int32)
    segment = np.concatenate(parts).astype(np.uint8)
    inputs = Inputs(flat, segment, np.zeros(len(flat), dtype=np.int32), positions_in_rows(begin), begin)
    return collate(InputsAndTargets(inputs, (RowClass("pair", np.array(truths)),)))


def head(steps: int, drop: float = 0.0, seed: int = 1) -> SANHead:
    made = SANHead(TRUNK, "pair", CLASSES, steps, drop)
    generator = torch.Generator().manual_seed(seed)
    for parameter in made.parameters():
        nn.init.normal_(parameter, 0, 0.5, generator=generator)
    return made


def states_of(batch) -> HiddenStates:
    count = len(batch.tokens.ids_T)
    return HiddenStates((torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(7)),))


def softmax(scores: list[float]) -> list[float]:
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    return [weight / sum(weights) for weight in weights]


def weighted(weights: list[float], words: list[list[float]]) -> list[float]:
    return [sum(w * word[d] for w, word in zip(weights, words, strict=True)) for d in range(WIDTH)]


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def gru(cell: nn.GRUCell, seen: list[float], memory: list[float]) -> list[float]:
    """One number at a time: reset, update and new gate."""
    w_in, w_on = cell.weight_ih.tolist(), cell.weight_hh.tolist()
    b_in, b_on = cell.bias_ih.tolist(), cell.bias_hh.tolist()
    put = [dot(w_in[i], seen) + b_in[i] for i in range(3 * WIDTH)]
    had = [dot(w_on[i], memory) + b_on[i] for i in range(3 * WIDTH)]
    after = []
    for d in range(WIDTH):
        reset = 1 / (1 + math.exp(-put[d] - had[d]))
        update = 1 / (1 + math.exp(-put[WIDTH + d] - had[WIDTH + d]))
        new = math.tanh(put[2 * WIDTH + d] + reset * had[2 * WIDTH + d])
        after.append((1 - update) * new + update * memory[d])
    return after


def written_out(module: AnswerModule, premise: list[list[float]], hypothesis: list[list[float]]) -> list[list[float]]:
    """The probabilities that each step gives, for one row."""
    w1, w2 = module.summarise.weight.tolist()[0], module.match.weight.tolist()
    w3, b3 = module.classify.weight.tolist(), module.classify.bias.tolist()
    memory = weighted(softmax([dot(w1, word) for word in hypothesis]), hypothesis)
    votes = []
    for step in range(module.steps):
        asked = [dot(row, memory) for row in w2]
        seen = weighted(softmax([dot(asked, word) for word in premise]), premise)
        apart = [abs(a - b) for a, b in zip(memory, seen, strict=True)]
        times = [a * b for a, b in zip(memory, seen, strict=True)]
        votes.append(softmax([dot(w3[c], [*memory, *seen, *apart, *times]) + b3[c] for c in range(CLASSES)]))
        if step + 1 < module.steps:
            memory = gru(module.remember, seen, memory)
    return votes


def words_of(states: Tensor, batch, row: int) -> tuple[list[list[float]], list[list[float]]]:
    """The states of the words of both texts of a row, cut out by hand."""
    one, other = ROWS[row]
    first = int(batch.row_starts_B[row]) + 1
    second = first + len(one) + 1
    return states[first : first + len(one)].tolist(), states[second : second + len(other)].tolist()


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("segments", [1, 2])
def test_probabilities_and_loss_equal_the_written_out_equations(steps, segments):
    made, batch = head(steps).eval(), batch_of(segments=segments)
    states = states_of(batch)
    said = made.logits(states, batch).detach()
    assert said.shape == (3, CLASSES)
    wanted = []
    for row in range(3):
        votes = written_out(made.answer, *words_of(states.last_TD, batch, row))
        wanted.append([sum(vote[c] for vote in votes) / steps for c in range(CLASSES)])
    np.testing.assert_allclose(said.exp().numpy(), wanted, rtol=2e-5)
    term = made(states, batch)
    loss = -sum(math.log(row[truth]) for row, truth in zip(wanted, (0, 2, 1), strict=True))
    assert float(term.total.detach()) == pytest.approx(loss, rel=1e-5)
    assert (int(term.correct), term.count) == (sum(np.argmax(wanted, 1) == [0, 2, 1]), 3)


def test_one_step_is_a_bilinear_attention_classifier():
    made, batch = head(1).eval(), batch_of()
    states = states_of(batch)
    assert sorted(name for name, _ in made.named_parameters()) == [
        f"answer.{name}" for name in ("classify.bias", "classify.weight", "match.weight", "summarise.weight")
    ]
    for row in range(3):
        premise, hypothesis = (torch.tensor(words) for words in words_of(states.last_TD, batch, row))
        query = torch.softmax(hypothesis @ made.answer.summarise.weight[0], 0) @ hypothesis
        seen = torch.softmax(premise @ (made.answer.match.weight @ query), 0) @ premise
        features = torch.cat([query, seen, (query - seen).abs(), query * seen])
        logits = made.answer.classify(features)
        torch.testing.assert_close(made.logits(states, batch)[row], logits.log_softmax(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_probabilities_sum_to_one(training):
    made, batch = head(5, drop=0.5).train(training), batch_of()
    for _ in range(5):
        said = made.logits(states_of(batch), batch)
        torch.testing.assert_close(said.exp().sum(1), torch.ones(3))


def test_at_least_one_vote_of_each_row_is_kept_and_any_may_be_dropped():
    torch.manual_seed(0)
    kept = vote_dropout(5, 4000, 0.9, torch.device("cpu"))
    assert kept.any(0).all()
    assert (~kept).any(1).all()
    torch.testing.assert_close(kept.float().mean(1), torch.full((5,), 0.1 + 0.9**5 / 5), rtol=0, atol=0.03)
    assert vote_dropout(5, 100, 0.0, torch.device("cpu")).all()


def test_prediction_dropout_averages_the_kept_votes_and_moves_as_the_papers_form():
    made, batch = head(4, drop=0.5).train(), batch_of()
    states = states_of(batch)
    torch.manual_seed(3)
    made(states, batch).total.backward()
    ours = [parameter.grad.clone() for parameter in made.parameters()]

    torch.manual_seed(3)
    kept = vote_dropout(4, 3, 0.5, torch.device("cpu")).float()
    assert 0 < float(kept.mean()) < 1
    grid = torch.zeros(3, batch.tokens.sequences.max_seqlen, WIDTH)
    for row in range(3):
        first, last = batch.tokens.sequences.cu_seqlens_S1[row : row + 2].tolist()
        grid[row, : last - first] = states.last_TD[first:last]
    votes = torch.stack(made.answer.votes(grid, *text_masks(batch.tokens))).exp()
    theirs = (votes * (kept / (1 - 0.5))[..., None]).mean(0)  # their divisor: the chance to be kept
    made.zero_grad()
    (-theirs.log()[torch.arange(3), torch.tensor([0, 2, 1])].sum()).backward()
    for one, parameter in zip(ours, made.parameters(), strict=True):
        torch.testing.assert_close(one, parameter.grad, rtol=1e-4, atol=1e-6)


def test_rows_know_nothing_of_each_other_and_the_texts_have_roles():
    made, together = head(3).eval(), batch_of()
    states = states_of(together)
    said = made.logits(states, together)
    for row in range(3):
        first, last = together.tokens.sequences.cu_seqlens_S1[row : row + 2].tolist()
        alone = batch_of(ROWS[row : row + 1], truths=(0,))
        torch.testing.assert_close(made.logits(HiddenStates((states.last_TD[first:last],)), alone)[0], said[row])
    grid = torch.randn(1, 5, WIDTH)
    one, other = torch.tensor([[0, 1, 1, 0, 0]]).bool(), torch.tensor([[0, 0, 0, 1, 1]]).bool()
    assert not torch.allclose(made.answer(grid, one, other), made.answer(grid, other, one), atol=1e-3)


@pytest.mark.parametrize("segments", [1, 2])
def test_special_tokens_belong_to_neither_text(segments):
    one, other = text_masks(batch_of(segments=segments).tokens)
    assert one.sum(1).tolist() == [3, 1, 4]
    assert other.sum(1).tolist() == [2, 4, 1]
    assert one[0].tolist() == [False, True, True, True, False, False, False, False]
    assert other[0].tolist() == [False, False, False, False, False, True, True, False]


def test_an_empty_text_is_answered_too():
    made, batch = head(3).eval(), batch_of((([], [21, 22]), ([11], [])), truths=(0, 1))
    said = made.logits(states_of(batch), batch)
    assert said.isfinite().all()
    torch.testing.assert_close(said.exp().sum(1), torch.ones(2))


def test_it_computes_in_float32_whatever_the_trunk_does():
    made, batch = head(3).eval(), batch_of()
    states = states_of(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        said = made.logits(states, batch)
    assert torch.equal(said, made.logits(states, batch))
    assert made.logits(HiddenStates((states.last_TD.bfloat16(),)), batch).dtype == torch.float32

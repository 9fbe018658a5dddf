"""Filled masks on the way: the shown rows, their truth, and guesses that the network really makes."""

import json

import numpy as np
import pytest
import torch

from unmask.config.attention_pattern import FULL
from unmask.config.network import TransformerConfig
from unmask.core.records import Cloze, Inputs, InputsAndTargets, RowClass, Spans
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.nets.batch.batch import collate
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import NSP
from unmask.train.batches.recipe_batches import StepBatch
from unmask.train.mask_samples import sample_fills
from unmask.train.multi_head_model import MultiHeadModel

LENGTH, ROWS = 40, 6


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(WordPiece(80, min_count=1), ["今天天气真好，我们去公园散步。", "你看见花了吗？花开得很好。"])


@pytest.fixture
def learner(tokenizer):
    made = MultiHeadModel(
        TransformerConfig(depth=1, width=16, heads=2, ffn_width=32), (MLM(), NSP), tokenizer.vocab.size + 3, LENGTH
    )
    made.init_weights(1)
    with torch.no_grad():
        made.heads["mlm"].lm_head.bias.copy_(torch.randn(made.heads["mlm"].lm_head.bias.shape))
        made.heads["mlm"].lm_head.bias[-3:] = 50.0  # ids that name no token, and yet are the likeliest
    return made.train()


@pytest.fixture
def lesson(tokenizer):
    """Six rows of 40 tokens; row i is asked from its place 5 * i on, every third place."""
    vocab = tokenizer.vocab
    truth = np.resize(vocab.ordinary, LENGTH * ROWS)
    rows = np.arange(ROWS + 1) * LENGTH
    asked = np.concatenate([np.arange(row + 5 * i, row + LENGTH, 3) for i, row in enumerate(rows[:-1])])
    ids = truth.copy()
    ids[asked] = vocab.mask
    zeros = np.zeros(len(ids), np.int32)
    inputs = Inputs(ids, zeros.astype(np.uint8), zeros, np.tile(np.arange(LENGTH), ROWS), rows)
    cloze = Cloze(asked, truth[asked], Spans(asked, asked + 1))
    instance = InputsAndTargets(inputs, (RowClass("next", np.zeros(ROWS, np.int64)), cloze))
    return StepBatch((instance,), (NSP, MLM()), FULL, "cloze", LENGTH)


def test_rows_are_shown_around_their_first_masks_with_the_truth(learner, lesson, tokenizer):
    lines = sample_fills(learner, lesson, tokenizer, rows=4, window=24)
    names = tokenizer.ids_to_tokens(np.resize(tokenizer.vocab.ordinary, LENGTH * ROWS))
    assert len(lines) == 4
    for row, line in enumerate(lines):
        left = max(0, min(5 * row - 8, LENGTH - 24)) + LENGTH * row
        assert len(line["shown"]) == 24
        assert all(line["shown"][int(place)] == "[MASK]" for place in line["truth"])
        restored = [line["truth"].get(str(place), token) for place, token in enumerate(line["shown"])]
        assert restored == names[left : left + 24]
        assert line["truth"].keys() == line["guesses"].keys()


def test_guesses_are_the_likeliest_tokens_that_have_a_name(learner, lesson, tokenizer):
    (line, *_) = sample_fills(learner, lesson, tokenizer, rows=2, top=3, window=12)
    learner.eval()
    with torch.no_grad():
        states = learner.network(collate(lesson.instances[0]).tokens)
        chances = learner.heads["mlm"].lm_head(states.last_TD[:12]).softmax(-1)
    for place, guesses in line["guesses"].items():
        best = chances[int(place), :-3].topk(3)
        assert [name for name, _ in guesses] == tokenizer.ids_to_tokens(best.indices.tolist())
        assert [chance for _, chance in guesses] == pytest.approx(best.values.tolist(), abs=1e-4)


def test_the_same_weights_say_the_same_and_the_learner_goes_on_learning(learner, lesson, tokenizer):
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    first = sample_fills(learner, lesson, tokenizer)
    assert first == sample_fills(learner, lesson, tokenizer)
    assert first == json.loads(json.dumps(first))
    assert all(part.training for part in learner.modules())
    assert all(torch.equal(value, before[name]) for name, value in learner.state_dict().items())
    assert all(parameter.grad is None for parameter in learner.parameters())


def test_short_rows_and_few_rows_are_shown_whole(learner, lesson, tokenizer):
    lines = sample_fills(learner, lesson, tokenizer, rows=50, window=100)
    assert [len(line["shown"]) for line in lines] == [LENGTH] * ROWS


def test_without_a_cloze_or_a_head_for_tokens_there_is_nothing_to_show(learner, lesson, tokenizer):
    (instance,) = lesson.instances
    facts = InputsAndTargets(instance.inputs, instance.targets[:1])
    assert sample_fills(learner, StepBatch((facts,), (NSP,), FULL, "pairs", LENGTH), tokenizer) == []
    assert sample_fills(learner, StepBatch((instance,), (NSP,), FULL, "pairs", LENGTH), tokenizer) == []

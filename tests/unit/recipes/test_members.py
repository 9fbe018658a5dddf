"""What every file of a member is held to, and what single members owe to their papers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from little_text import rows_of

import unmask.recipes
from unmask.config.model_type import ModelType
from unmask.config.network import Sharing
from unmask.config.optim import LAMB, AdamW
from unmask.config.sizes import SIZES
from unmask.core.records import UnitKind
from unmask.core.rng import Key
from unmask.data.corrupt.masking import MaskTokens, Replace, ReplaceBy, SelectedTokens
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.data.tokenize.vocab import Vocab
from unmask.members import member, members, module_of, sizes
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import SOP

TEXTS = (
    "The unhappiest readers kept misunderstanding the rewritten sentences, unfortunately.",
    "Misunderstanding readers rewrite unhappily; the reading goes on and on.",
    "今天下午我们去图书馆看书，语言模型预测下一个词。",
    "明天上午他们去公园看花，机器学习从数据里找规律。",
)


def test_the_file_of_a_member_is_short_and_headed_by_its_paper_and_its_change():
    files = [path for path in Path(unmask.recipes.__path__[0]).glob("*.py") if path.stem != "__init__"]
    assert len(files) == len(members())
    for path in files:
        assert len(path.read_text(encoding="utf-8").splitlines()) < 100, path.name
    for recipe in members():
        first, _, rest = (module_of(recipe.name).__doc__ or "").partition("\n\n")
        assert "et al., 20" in first, recipe.name
        assert not recipe.parent or "Changes from" in rest, recipe.name


def test_a_dash_in_a_name_is_an_underscore_in_its_file():
    assert module_of("wwm-ext").__name__ == "unmask.recipes.wwm_ext"
    assert member("wwm-ext").name == "wwm-ext"
    assert member("wwm-ext", "tiny").network.width == 128
    assert sizes("wwm-ext") == SIZES


def test_the_longer_wwm_has_a_million_short_steps_and_400_000_long_ones():
    short, long = member("wwm-ext").stages
    assert short.fraction / long.fraction == pytest.approx(1_000_000 / 400_000)
    assert [(stage.max_length, stage.batch_size) for stage in (short, long)] == [(128, 2560), (512, 384)]
    assert member("wwm-ext").tasks == member("wwm").tasks


@pytest.mark.parametrize(
    ("name", "dialect"),
    [("bert", "bert"), ("wwm", "bert"), ("wwm-ext", "bert"), ("spanbert", "bert"), ("macbert", "bert"),
     ("roberta", "roberta"), ("albert", "albert")],
)  # fmt: skip
def test_a_member_says_whose_class_it_is_exported_to(name, dialect):
    assert member(name).model_type is ModelType(dialect)


def test_albert_shares_everything_drops_nothing_and_comes_small_too():
    recipe = member("albert")
    assert (recipe.network.sharing, recipe.network.embedding_width) == (Sharing.ALL, 128)
    assert (recipe.network.dropout, recipe.network.attention_dropout) == (0, 0)
    assert isinstance(recipe.optim.optimizer, LAMB)
    assert set(SIZES) | {"xlarge", "xxlarge"} == set(sizes("albert"))


@pytest.mark.parametrize(
    ("name", "epsilon", "corrected"),
    [("bert", 1e-6, False), ("electra", 1e-6, False), ("roberta", 1e-6, True), ("spanbert", 1e-8, True),
     ("ernie", 1e-8, True)],
)  # fmt: skip
def test_adam_is_that_of_the_library_a_member_was_written_with(name, epsilon, corrected):
    """Google's code leaves the bias correction out; fairseq and Paddle have it."""
    adam = member(name).optim.optimizer
    assert isinstance(adam, AdamW)
    assert (adam.eps, adam.bias_correction, adam.weight_decay) == (epsilon, corrected, 0.01)


def test_whole_words_are_chosen_in_english_and_in_chinese():
    tokenizer = train_tokenizer(WordPiece(size=150, min_count=1), TEXTS)
    example = rows_of(TEXTS, tokenizer)
    corrupt = member("wwm").tasks[0].corruption
    words = example.units.spans(UnitKind.WORD)
    assert (words.lengths[: len(words) // 2] > 1).any(), "an English word of several pieces"
    touched = np.zeros(2, dtype=np.int64)
    for visit in range(50):
        instance = corrupt(example, tokenizer.vocab, Key.of(visit).fold_in(np.arange(len(TEXTS))))
        hidden = np.isin(np.arange(len(example.ids)), instance.targets[0].positions)
        for start, end in zip(words.start.tolist(), words.end.tolist(), strict=True):
            assert hidden[start:end].all() or not hidden[start:end].any()
            touched[int(start >= example.rows[2])] += bool(hidden[start]) and end - start > 1
    assert (touched > 0).all(), "words of several tokens were chosen in both languages"


def test_macbert_is_made_of_similar_words_in_runs_and_of_sentence_order():
    recipe = member("macbert")
    (task,) = recipe.tasks
    assert task.examples == SegmentPairs(Negative.SWAPPED, short_fraction=0.1)
    assert task.objectives == (MLM(), SOP)
    assert isinstance(task.corruption, MaskTokens)
    assert task.corruption.select.run_lengths == (0.4, 0.3, 0.2, 0.1)
    assert task.corruption.replace == Replace(similar=0.8, random=0.1, keep=0.1, per=ReplaceBy.WORD)


def test_each_word_of_a_run_is_replaced_on_its_own_by_a_word_of_its_length():
    words = [(10,), (11,), (12,), (20, 21), (22, 23), (30, 31, 32)]
    table = SimilarWords.of(words, [[1], [0], [], [4], [3], []])
    vocab = Vocab(100, 1, 2, 3, 0, 4, np.arange(10, 100, dtype=np.int32), np.zeros(0, np.int32), table)
    ids = np.array([10, 20, 21, 12, 30, 31, 32] * 200, dtype=np.int32)  # one run of four words, in 200 rows
    row = np.repeat(np.arange(200), 7)
    head = np.arange(200)[:, None] * 7 + np.array([0, 1, 1, 3, 4, 4, 4])
    chosen = SelectedTokens(ids, row, np.tile(np.arange(7), 200), head.reshape(-1), row * 7)
    show = member("macbert").tasks[0].corruption.replace
    shown = show(chosen, vocab, Key.of(5).fold_in(np.arange(200))).reshape(200, 7)
    assert not (shown == vocab.mask).any()
    fates = np.stack([shown[:, 0] == 11, (shown[:, 1:3] == [22, 23]).all(axis=1)], axis=1)
    assert 0.7 < fates.mean() < 0.9
    assert {tuple(pair) for pair in fates.tolist()} == {(a, b) for a in (True, False) for b in (True, False)}
    lone, long = shown[:, 3], shown[:, 4:]
    assert set(lone[lone != 12].tolist()) == {10, 11}, "no similar word: a random word of the same length"
    assert 0.05 < (lone == 12).mean() < 0.2
    kept = (long == [30, 31, 32]).all(axis=1)
    assert 0.05 < kept.mean() < 0.2, "no other word of its length: random tokens"

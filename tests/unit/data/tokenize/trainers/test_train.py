"""What users rely on in a trained vocabulary: the same file every time, templates, sizes, sentinels."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from unmask.core.errors import RecipeError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import as_trainer_text, count_words, train_tokenizer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece

SCRIPT = """
import sys
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece
texts = sys.stdin.read().split("|")
for spec in (WordPiece(300, min_count=1, min_pair=1), ByteBPE(330), Unigram(260), Characters(300, min_count=1)):
    print(train_tokenizer(spec, iter(texts)).pipeline.to_str())
"""


def test_two_processes_write_the_same_bytes(corpus):
    made = {_train_in_a_process("|".join(corpus), seed) for seed in ("1", "2", "3")}
    assert len(made) == 1
    assert len(made.pop().splitlines()) == 4


def _train_in_a_process(texts: str, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, input=texts, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def pieces(tokenizer: Tokenizer, *texts: str) -> list[str]:
    return tokenizer.pipeline.encode(*texts).tokens


def test_bert_template(tokenizers):
    encoding = tokenizers["uncased"].pipeline.encode("the dog", "语言")
    assert encoding.tokens == ["[CLS]", "the", "dog", "[SEP]", "语", "言", "[SEP]"]
    assert encoding.type_ids == [0, 0, 0, 0, 1, 1, 1]


def test_roberta_template(tokenizers):
    tokens = pieces(tokenizers["bytes"], "the", "the")
    middle = tokens[1 : tokens.index("</s>")]
    assert tokens == ["<s>", *middle, "</s>", "</s>", *middle, "</s>"]


def test_nothing_pads_or_truncates(tokenizer):
    assert tokenizer.pipeline.padding is None
    assert tokenizer.pipeline.truncation is None


@pytest.mark.parametrize("spec", [WordPiece(400), ByteBPE(400), Unigram(400), Characters(400)])
def test_transformers_loads_the_file(spec, corpus, tmp_path):
    transformers = pytest.importorskip("transformers")
    path = tmp_path / "tokenizer.json"
    train_tokenizer(spec, iter(corpus)).save(path)
    loaded = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), mask_token=spec.special_tokens.mask)
    assert loaded.convert_ids_to_tokens(loaded("the dog")["input_ids"])[0] == spec.special_tokens.cls


@pytest.mark.parametrize(
    "spec",
    [
        WordPiece(300, num_sentinels=4),
        ByteBPE(300, num_sentinels=4),
        Unigram(300, num_sentinels=4),
        Characters(90, num_sentinels=4),
    ],
)
def test_sentinels_count_down_from_the_top(spec, corpus):
    tokenizer = train_tokenizer(spec, iter(corpus))
    vocab = tokenizer.vocab
    assert vocab.size <= spec.size
    assert vocab.sentinels.tolist() == [vocab.size - 1, vocab.size - 2, vocab.size - 3, vocab.size - 4]
    assert tokenizer.ids_to_tokens(vocab.sentinels)[0] == "<extra_id_0>"
    assert not set(vocab.sentinels.tolist()) & set(vocab.ordinary.tolist())


@pytest.mark.parametrize("spec", [WordPiece(60, min_count=1), ByteBPE(290), Unigram(120), Characters(60, min_count=1)])
def test_the_size_is_kept(spec, corpus):
    assert train_tokenizer(spec, iter(corpus)).vocab.size == spec.size


@pytest.mark.parametrize("make", [lambda: WordPiece(4), lambda: ByteBPE(200), lambda: Characters(9, num_sentinels=5)])
def test_a_vocabulary_without_room_is_refused(make):
    with pytest.raises(RecipeError, match="choose a larger size"):
        make()


def test_no_text_gives_the_special_tokens_alone():
    for spec in (WordPiece(), Unigram(), Characters()):
        assert train_tokenizer(spec, iter(())).vocab.size == len(spec.ordered_specials)


def test_chinese_characters_enter_whole_and_never_continue_a_word():
    texts = ["汉字汉字 abc abc", "汉语 罕 abd"]
    names = set(train_tokenizer(WordPiece(min_count=2), iter(texts)).pipeline.get_vocab())
    assert {"汉", "字", "a", "##b", "abc"} <= names
    assert not {"罕", "语", "d", "##d"} & names
    assert not [name for name in names if name.startswith("##") and "\u4e00" <= name[2] <= "\u9fff"]


def test_case_and_accents_follow_the_spec(tokenizers):
    assert pieces(tokenizers["uncased"], "Thé")[1:-1] == ["the"]
    assert pieces(tokenizers["cased"], "The")[1].startswith("T")
    assert pieces(tokenizers["cased"], "é")[1:-1] == ["é"]


def test_the_most_frequent_merge_comes_first():
    names = train_tokenizer(WordPiece(100, min_count=1), iter(["xy ab ab xy ab"])).pipeline.get_vocab()
    assert names["ab"] < names["xy"]


def test_bytes_leave_nothing_unknown(tokenizers):
    text = "罕见𠀀 \x07 naïve 😀"
    tokenizer = tokenizers["bytes"]
    assert tokenizer.decode(tokenizer.pipeline.encode(text, add_special_tokens=False).ids) == text


def test_rare_words_are_forgotten_only_when_there_are_too_many():
    texts = ["a b", "a c", "a d", "e"]
    assert count_words(texts, str.split) == Counter(a=3, b=1, c=1, d=1, e=1)
    assert count_words(texts, str.split, max_words=2) == Counter(a=3)


def test_repeated_words_are_counted_as_often():
    counts = Counter(a=10, b=3)
    assert Counter(" ".join(as_trainer_text(counts, block=4)).split()) == counts

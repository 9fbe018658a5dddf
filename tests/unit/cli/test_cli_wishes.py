"""What was wished for on the command line, turned into parts."""

from pathlib import Path

import pytest

from unmask.api.prepare import PrepareOptions
from unmask.core.errors import RecipeError
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece


@pytest.mark.parametrize(
    ("wishes", "spec"),
    [
        (PrepareOptions(member="roberta"), ByteBPE()),
        (PrepareOptions(member="bert", vocab_size=5000), WordPiece(size=5000)),
        (PrepareOptions(vocabulary="wordpiece-cased"), WordPiece(lowercase=False, strip_accents=False)),
        (PrepareOptions(vocabulary="unigram", vocab_size=900), Unigram(size=900)),
        (PrepareOptions(vocabulary="characters", num_sentinels=100), Characters(num_sentinels=100)),
        (PrepareOptions(member="albert", vocabulary="byte-bpe"), ByteBPE()),
    ],
)
def test_the_vocabulary_is_the_members_unless_another_was_wished_for(wishes, spec):
    assert wishes.trainer == spec


@pytest.fixture
def given(tmp_path):
    path = tmp_path / "tokenizer.json"
    train_tokenizer(Characters(size=40), ["今天天气很好", "今天天气真好"]).save(path)
    return path


@pytest.mark.parametrize("more", [{"vocabulary": "unigram"}, {"vocab_size": 9}, {"num_sentinels": 2}])
def test_a_given_tokenizer_is_not_trained(given, more):
    with pytest.raises(RecipeError, match="--tokenizer gives one"):
        PrepareOptions(tokenizer=given, **more).describe()


def test_words_are_added_to_a_given_tokenizer_only(given, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("天气\n", encoding="utf-8")
    plain, longer = PrepareOptions(tokenizer=given), PrepareOptions(tokenizer=given, extend=words)
    assert longer.given_tokenizer.tokenizer.vocab.size == plain.given_tokenizer.vocab.size + 1
    assert plain.describe()["vocabulary"] != longer.describe()["vocabulary"]
    with pytest.raises(RecipeError, match="give one with --tokenizer"):
        PrepareOptions(extend=words).describe()


def test_the_users_lists_are_kept_beside_the_shards(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("人工智能 5\n", encoding="utf-8-sig")
    second.write_text("深度学习", encoding="utf-8")
    PrepareOptions(dictionaries=(first, second)).save_lists(tmp_path)
    assert (tmp_path / "dictionary.txt").read_text(encoding="utf-8") == "人工智能 5\n深度学习\n"
    assert not Path(tmp_path / "terms.tsv").exists()

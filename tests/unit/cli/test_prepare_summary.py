"""What is said when a corpus is prepared: what was left out, and what to do where much is unknown."""

from __future__ import annotations

import pytest

from unmask.cli.ui.prepare_summary import print_summary
from unmask.core.records import UnitKind
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece

MORE_TEXT = "Prepare more text: a character gets an entry only if it comes at least twice."


def said(tmp_path, capsys, unknown: int, size: int, asked: int, dropped: dict[str, int] | None = None):
    tokenizer = train_tokenizer(WordPiece(size=size), ["今天天气很好，我们去公园。"] * 2)
    tokenizer.save(tmp_path / "tokenizer.json")
    counts = Counts(documents=1, tokens=10, unknown=unknown, characters=10)
    print_summary(Manifest(tokenizer.digest, "", (UnitKind.WORD,), {}, counts, dropped or {}, {}), tmp_path, asked)
    return capsys.readouterr()


@pytest.mark.parametrize(
    ("size", "asked", "advice"),
    [
        (100, 100, MORE_TEXT),
        (10, 10, "Take a larger one (--vocab-size), or one that was made for such text."),
        (100, 0, "Take one that was made for such text, or leave --tokenizer out to learn one."),
    ],
    ids=["the text gave no more", "no more was asked for", "given"],
)
def test_many_unknown_tokens_come_with_advice_that_helps(tmp_path, capsys, size, asked, advice):
    told = said(tmp_path, capsys, 9, size, asked)
    assert told.err == f"note: 90.0 % of the tokens are unknown to this vocabulary. {advice}\n"
    assert ("the text holds no more" in told.out) is (advice is MORE_TEXT)


@pytest.mark.parametrize("spec", [WordPiece(), Characters()], ids=["wordpiece", "characters"])
def test_a_character_that_comes_twice_gets_an_entry_and_one_that_comes_once_does_not(spec):
    assert train_tokenizer(spec, ["这本书很好。好"]).vocab.size == len(spec.ordered_specials) + 1


def test_few_unknown_tokens_need_no_note(tmp_path, capsys):
    assert said(tmp_path, capsys, 0, 100, 100).err == ""


def test_what_was_left_out_is_counted_in_words(tmp_path, capsys):
    dropped = {"broken JSON": 4, "exact duplicate": 4, "near duplicate": 1}
    lines = said(tmp_path, capsys, 0, 100, 0, dropped).out.splitlines()
    assert [line.split(maxsplit=2)[2].rstrip() for line in lines if line.startswith("left out")] == [
        "4 broken JSON",
        "4 exact duplicates",
        "1 near duplicate",
    ]

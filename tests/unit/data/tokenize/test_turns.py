"""Turns on characters become turns on tokens: who speaks stands in the byte of the first token."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.core.records import Document, UnitFlag, UnitKind
from unmask.data.text.dialogues import make_dialogue
from unmask.data.text.units.sentences import Sentences
from unmask.data.text.units.words import Words
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.trainers.train import TokenizerTrainer, train_tokenizer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece

TURNS = ["你去哪里？我也去。", "公园", "Why not the museum? Go!", "好"]


@pytest.mark.parametrize("spec", [WordPiece(size=80, min_count=1), Unigram(size=80, coverage=1.0)], ids=repr)
def test_every_turn_begins_with_its_first_token(spec: TokenizerTrainer) -> None:
    tokenizer = train_tokenizer(spec, TURNS)
    document = Words()(Sentences()(make_dialogue("talk", TURNS)))
    found = Encoder(tokenizer)(document)
    bits = found.units.bits
    starts = np.flatnonzero(bits & UnitFlag.TURN)
    pieces = np.split(found.ids, starts[1:])
    assert starts[0] == 0
    assert [len(piece) for piece in pieces] == [len(Encoder(tokenizer)(Document("", text)).ids) for text in TURNS]
    assert ((bits[starts] & UnitFlag.REPLY) != 0).tolist() == [False, True, False, True]
    assert ((bits[starts] & UnitFlag.BORDER) == UnitFlag.BORDER).all()
    assert not (np.delete(bits, starts) & UnitFlag.REPLY).any()
    assert found.labels[UnitKind.TURN] == ("Q", "R", "Q", "R")


def test_a_turn_without_tokens_vanishes_and_the_others_keep_their_roles() -> None:
    tokenizer = train_tokenizer(WordPiece(size=80, min_count=1), TURNS)
    document = make_dialogue("talk", ["你", "\u200b\u200b", "哪里", "公", "\u200b"])
    found = Encoder(tokenizer)(Words()(Sentences()(document)))
    starts = np.flatnonzero(found.units.bits & UnitFlag.TURN)
    assert ["".join(tokenizer.ids_to_tokens(piece)) for piece in np.split(found.ids, starts[1:])] == [
        "你",
        "哪里",
        "公",
    ]
    assert ((found.units.bits[starts] & UnitFlag.REPLY) != 0).tolist() == [False, False, True]
    assert found.labels[UnitKind.TURN] == ("Q", "Q", "R")


def test_an_ordinary_text_has_no_turns() -> None:
    tokenizer = train_tokenizer(WordPiece(size=80, min_count=1), TURNS)
    found = Encoder(tokenizer)(Words()(Sentences()(Document("text", "\n".join(TURNS)))))
    assert not (found.units.bits & (UnitFlag.TURN | UnitFlag.REPLY)).any()

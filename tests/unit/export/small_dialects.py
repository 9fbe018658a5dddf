"""A small shape of each dialect, with a vocabulary that goes with it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from small_bert import TEXTS, TRUNK, small_tokenizer

from unmask.dialect import Dialect
from unmask.nets.trunk import Activation, Sharing
from unmask.tokenize.bpe import ByteBPE
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tokenize.train import train
from unmask.tokenize.unigram import Unigram

SHAPES = {
    Dialect.BERT: TRUNK,
    Dialect.ROBERTA: replace(TRUNK, segments=1, first_position=2, epsilon=1e-5),
    Dialect.ALBERT: replace(TRUNK, embedding=8, sharing=Sharing.ALL, activation=Activation.GELU_TANH),
    Dialect.ERNIE: replace(TRUNK, segments=4, activation=Activation.RELU),
    Dialect.ELECTRA: replace(TRUNK, embedding=8, pooled=Activation.GELU),
}


@cache
def tokenizer_for(dialect: Dialect) -> Tokenizer:
    """Byte-level BPE for RoBERTa, Unigram for ALBERT, WordPiece for the others."""
    match dialect:
        case Dialect.ROBERTA:
            return train(ByteBPE(300), TEXTS)
        case Dialect.ALBERT:
            return train(Unigram(120, coverage=1.0), TEXTS)
    return small_tokenizer()

"""A small shape of each dialect, with a vocabulary that goes with it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from small_bert import TEXTS, TRUNK, small_tokenizer

from unmask.config.model_type import ModelType
from unmask.config.network import Activation, Sharing
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.unigram import Unigram

SHAPES = {
    ModelType.BERT: TRUNK,
    ModelType.ROBERTA: replace(TRUNK, num_segments=1, position_offset=2, norm_eps=1e-5),
    ModelType.ALBERT: replace(TRUNK, embedding_width=8, sharing=Sharing.ALL, activation=Activation.GELU_TANH),
    ModelType.ERNIE: replace(TRUNK, num_segments=4, activation=Activation.RELU),
    ModelType.ELECTRA: replace(TRUNK, embedding_width=8, pooler_activation=Activation.GELU),
}


@cache
def tokenizer_for(dialect: ModelType) -> Tokenizer:
    """Byte-level BPE for RoBERTa, Unigram for ALBERT, WordPiece for the others."""
    match dialect:
        case ModelType.ROBERTA:
            return train_tokenizer(ByteBPE(300), TEXTS)
        case ModelType.ALBERT:
            return train_tokenizer(Unigram(120, coverage=1.0), TEXTS)
    return small_tokenizer()

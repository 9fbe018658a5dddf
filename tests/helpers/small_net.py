"""A small network with its tokenizer, to be asked and not trained."""

from __future__ import annotations

import torch

from unmask.config.network import TransformerConfig
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.nets.encoder import init_weights
from unmask.nets.model import EncoderWithHeads

TEXTS = ("今天天气真好，我们去公园散步。", "The quick brown fox jumps over the lazy dog.") * 2


def small_tokenizer() -> Tokenizer:
    return train_tokenizer(WordPiece(120, min_count=1), TEXTS)


def small_model(vocabulary: int = 120, positions: int = 24, tokens: bool = True) -> EncoderWithHeads:
    model = EncoderWithHeads(
        TransformerConfig(depth=3, width=16, heads=2, ffn_width=32), vocabulary, positions, tokens, has_row_head=True
    )
    init_weights(model, 0.3, torch.Generator().manual_seed(4))
    return model.eval()

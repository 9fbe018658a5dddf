"""A small network with its tokenizer, and a folder of them as transformers would leave it."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from unmask.dialect import Dialect
from unmask.export.architecture import Architecture, Purpose
from unmask.export.settings import write_config
from unmask.export.write import their_weights
from unmask.nets.model import Model
from unmask.nets.transformer import draw_weights
from unmask.nets.trunk import Trunk
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tokenize.train import train
from unmask.tokenize.wordpiece import WordPiece

TRUNK = Trunk(depth=2, width=16, heads=2, inner=32)
POSITIONS = 32
PRE_TRAINING, MASKED_LM, ENCODER = (
    Architecture(Dialect.BERT, purpose) for purpose in (Purpose.PRE_TRAINING, Purpose.MASKED_LM, Purpose.ENCODER)
)
CLASSIFIER, TAGGER, READER, CHOOSER = (
    Architecture(Dialect.BERT, purpose)
    for purpose in (Purpose.CLASSIFIER, Purpose.TAGGER, Purpose.READER, Purpose.CHOOSER)
)
TEXTS = ("今天天气真好，我们去公园散步。", "The quick brown fox jumps over the lazy dog.") * 2


def small_tokenizer() -> Tokenizer:
    return train(WordPiece(120, min_count=1), TEXTS)


def small_model(vocabulary: int = 120, tokens: bool = True, row: bool = True, trunk: Trunk = TRUNK) -> Model:
    model = Model(trunk, vocabulary, POSITIONS, tokens, row)
    draw_weights(model, 0.1, torch.Generator().manual_seed(4))
    return model


def write_folder(folder: Path, model: Model, architecture: Architecture, **settings: object) -> Path:
    """The three files that an import needs, without a proof."""
    folder.mkdir(exist_ok=True)
    pad = max(0, model.shape.first_position - 1)
    (folder / "config.json").write_text(json.dumps(write_config(model, pad, architecture) | settings))
    save_file(their_weights(model, architecture), folder / "model.safetensors")
    small_tokenizer().save(folder / "tokenizer.json")
    return folder

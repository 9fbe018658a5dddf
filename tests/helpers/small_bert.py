"""A small network with its tokenizer, and a folder of them as transformers would leave it."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from unmask.config.model_type import ModelType
from unmask.config.network import TransformerConfig
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.interop.hf.config_json import write_config
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import to_hf_state_dict
from unmask.nets.encoder import init_weights
from unmask.nets.model import EncoderWithHeads

TRUNK = TransformerConfig(depth=2, width=16, heads=2, ffn_width=32)
POSITIONS = 32
PRE_TRAINING, MASKED_LM, ENCODER = (
    Architecture(ModelType.BERT, purpose) for purpose in (HFTask.PRE_TRAINING, HFTask.MASKED_LM, HFTask.ENCODER)
)
CLASSIFIER, TAGGER, READER, CHOOSER = (
    Architecture(ModelType.BERT, purpose)
    for purpose in (HFTask.CLASSIFIER, HFTask.TOKEN_CLASSIFICATION, HFTask.QUESTION_ANSWERING, HFTask.MULTIPLE_CHOICE)
)
TEXTS = ("今天天气真好，我们去公园散步。", "The quick brown fox jumps over the lazy dog.") * 2


def small_tokenizer() -> Tokenizer:
    return train_tokenizer(WordPiece(120, min_count=1), TEXTS)


def small_model(
    vocabulary: int = 120, tokens: bool = True, row: bool = True, trunk: TransformerConfig = TRUNK
) -> EncoderWithHeads:
    model = EncoderWithHeads(trunk, vocabulary, POSITIONS, tokens, row)
    init_weights(model, 0.1, torch.Generator().manual_seed(4))
    return model


def write_folder(folder: Path, model: EncoderWithHeads, architecture: Architecture, **settings: object) -> Path:
    """The three files that an import needs, without a proof."""
    folder.mkdir(exist_ok=True)
    pad = max(0, model.config.position_offset - 1)
    (folder / "config.json").write_text(json.dumps(write_config(model, pad, architecture) | settings))
    save_file(to_hf_state_dict(model, architecture), folder / "model.safetensors")
    small_tokenizer().save(folder / "tokenizer.json")
    return folder

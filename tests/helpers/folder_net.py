"""A network so small that it is tuned in a second, in a folder of its own, and lines of JSON to tune it on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

from unmask.config.model_type import ModelType
from unmask.config.network import TransformerConfig
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.interop.hf.config_json import write_config
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import to_hf_state_dict
from unmask.nets.encoder import init_weights
from unmask.nets.model import EncoderWithHeads

WHOLE = Architecture(ModelType.BERT, HFTask.PRE_TRAINING)
GOOD, BAD = "房间很好，很干净", "又脏又吵，再也不来了"


def network(folder: Path, seed: int = 1) -> None:
    """A Hugging Face folder with a BERT of one layer, and a tokenizer that knows the two reviews."""
    model = EncoderWithHeads(TransformerConfig(depth=1, width=16, heads=2, ffn_width=32), 80, 32)
    init_weights(model, 0.1, torch.Generator().manual_seed(seed))
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(write_config(model, 0, WHOLE)))
    save_file(to_hf_state_dict(model, WHOLE), folder / "model.safetensors")
    train_tokenizer(WordPiece(80, min_count=1), (GOOD, BAD, "0123456789") * 2).save(folder / "tokenizer.json")


def lines(name: str, rows: Sequence[dict[str, object]]) -> None:
    """A file of JSON lines."""
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))

"""A network so small that it is tuned in a second, in a folder of its own, and lines of JSON to tune it on."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from unmask.tokenize.train import train
from unmask.tokenize.wordpiece import WordPiece

WHOLE = Architecture(Dialect.BERT, Purpose.PRE_TRAINING)
GOOD, BAD = "房间很好，很干净", "又脏又吵，再也不来了"


def network(folder: Path, seed: int = 1) -> None:
    """A Hugging Face folder with a BERT of one layer, and a tokenizer that knows the two reviews."""
    model = Model(Trunk(depth=1, width=16, heads=2, inner=32), 80, 32)
    draw_weights(model, 0.1, torch.Generator().manual_seed(seed))
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(write_config(model, 0, WHOLE)))
    save_file(their_weights(model, WHOLE), folder / "model.safetensors")
    train(WordPiece(80, min_count=1), (GOOD, BAD, "0123456789") * 2).save(folder / "tokenizer.json")


def lines(name: str, rows: Sequence[dict[str, object]]) -> None:
    """A file of JSON lines."""
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))

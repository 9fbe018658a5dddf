"""A small network with its tokenizer, and small task files whose answer can be read off the words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import torch

from unmask.config.network import TransformerConfig
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.nets.encoder import init_weights
from unmask.nets.model import EncoderWithHeads

TRUNK = TransformerConfig(depth=1, width=16, heads=2, ffn_width=32)
POSITIONS = 24
GOOD, BAD = ("今天天气真好", "房间很好很干净", "we liked it a lot"), ("又脏又吵", "再也不来了", "we hated it a lot")


def little_tokenizer() -> Tokenizer:
    return train_tokenizer(WordPiece(120, min_count=1), (*GOOD, *BAD, "0 1 2 3 4 5 6 7 8 9") * 2)


def little_model(row: bool = True, trunk: TransformerConfig = TRUNK) -> EncoderWithHeads:
    model = EncoderWithHeads(trunk, 120, POSITIONS, has_lm_head=True, has_row_head=row)
    init_weights(model, 0.1, torch.Generator().manual_seed(4))
    return model


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def reviews(count: int, first: int = 0) -> list[dict[str, object]]:
    """Good and bad in turn, no two alike."""
    return [{"text": f"{(GOOD, BAD)[i % 2][i // 2 % 3]} {i}", "label": i % 2} for i in range(first, first + count)]


def ratings(count: int, first: int = 0) -> list[dict[str, object]]:
    """Pairs that score high when both say the same; far from 0, and in large units."""
    return [
        {"sentence1": GOOD[i % 3], "sentence2": f"{(GOOD, BAD)[i % 2][i % 3]} {i}", "score": 250.5 - 100 * (i % 2)}
        for i in range(first, first + count)
    ]

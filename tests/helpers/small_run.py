"""A run folder as `unmask pretrain` leaves it, with weights drawn by lot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from small_bert import POSITIONS, TRUNK, small_tokenizer
from small_dialects import SHAPES

from unmask.config.model_type import ModelType
from unmask.config.network import TransformerConfig
from unmask.core.codec import encode, fingerprint
from unmask.members import member
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.rundir.checkpoint import BestEval, RunState, save_checkpoint
from unmask.train.schedule import RunProgress


def trunk_of(name: str) -> TransformerConfig:
    """BERT's shape, unless the member has parts that only its own shape has room for."""
    return SHAPES[ModelType.ELECTRA] if name == "electra" else TRUNK


def drawn(seed: int, name: str = "bert") -> MultiHeadModel:
    recipe = member(name)
    learner = MultiHeadModel(trunk_of(name), recipe.objectives, small_tokenizer().vocab.size, POSITIONS)
    learner.init_weights(seed)
    return learner


def write_run(folder: Path, learners: dict[int, MultiHeadModel], best: int = 0, name: str = "bert") -> Path:
    """A run with a checkpoint for each step given, of which one was the best."""
    recipe = replace(member(name), network=trunk_of(name))
    tokenizer = small_tokenizer()
    folder.mkdir()
    said = {
        "unmask": "0.1.0",
        "format": 1,
        "kind": "pretrain",
        "recipe": encode(recipe),
        "fingerprint": fingerprint(recipe),
        "budget": {"steps": 20},
        "seed": 0,
        "corpus": {"folder": "data", "manifest": "ab", "documents": 1234, "tokens": 5678},
        "tokenizer": tokenizer.digest,
        "from": "",
        "parameters": 1,
        "vocabulary": tokenizer.vocab.size,
        "positions": POSITIONS,
    }
    (folder / "run.json").write_text(json.dumps(said))
    tokenizer.save(folder / "tokenizer.json")
    for step, learner in learners.items():
        state = RunState(RunProgress(step, 10 * step, 1.0), BestEval(2.0, best) if best else BestEval())
        save_checkpoint(folder / "checkpoints", learner.named_weights(), {}, state)
    return folder

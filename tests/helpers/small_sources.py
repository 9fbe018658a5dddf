"""A run folder as `unmask pretrain` leaves it, and the commands that use one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import typer
from typer.testing import CliRunner

from unmask.cli.embed import embed
from unmask.cli.export import export
from unmask.cli.fill_mask import fill_mask
from unmask.config.network import Sharing, TransformerConfig
from unmask.core.codec import encode, fingerprint
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.members import member
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.rundir.checkpoint import BestEval, RunState, save_checkpoint
from unmask.train.schedule import RunProgress

TEXTS = ("今天天气真好，我们去公园散步。", "The quick brown fox jumps over the lazy dog.") * 2
POSITIONS = 24
app = typer.Typer(pretty_exceptions_enable=False)
for command in (fill_mask, embed, export):
    app.command()(command)


def run(*words: object, given: str = ""):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(word) for word in words], input=given)


def write_run(folder: Path, name: str = "bert", sharing: Sharing = Sharing.NONE) -> Path:
    """A run with two checkpoints, the first of which was the better one."""
    recipe = member(name)
    small = TransformerConfig(
        depth=2, width=16, heads=2, ffn_width=32, pooler_activation=recipe.network.pooler_activation, sharing=sharing
    )
    recipe = replace(recipe, network=small)
    tokenizer = train_tokenizer(WordPiece(120, min_count=1), TEXTS)
    folder.mkdir()
    tokenizer.save(folder / "tokenizer.json")
    size = tokenizer.vocab.size
    said = {"format": 1, "kind": "pretrain", "recipe": encode(recipe), "fingerprint": fingerprint(recipe), "from": ""}
    said |= {"corpus": {"documents": 12, "tokens": 345}, "vocabulary": size, "positions": POSITIONS}
    (folder / "run.json").write_text(json.dumps(said))
    for step in (5, 10):
        learner = MultiHeadModel(recipe.network, recipe.objectives, size, POSITIONS)
        learner.init_weights(step)
        save_checkpoint(
            folder / "checkpoints", learner.named_weights(), {}, RunState(RunProgress(step), BestEval(1.0, 5))
        )
    return folder

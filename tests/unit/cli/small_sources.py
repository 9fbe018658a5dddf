"""A run folder as `unmask pretrain` leaves it, and the commands that use one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import typer
from typer.testing import CliRunner

from unmask.cli.embed import embed
from unmask.cli.export import export
from unmask.cli.fill import fill
from unmask.codec import encode, fingerprint
from unmask.family import member
from unmask.nets.trunk import Sharing, Trunk
from unmask.tokenize.train import train
from unmask.tokenize.wordpiece import WordPiece
from unmask.train.budget import Progress
from unmask.train.checkpoint import Best, State, save_checkpoint
from unmask.train.learner import Learner

TEXTS = ("今天天气真好，我们去公园散步。", "The quick brown fox jumps over the lazy dog.") * 2
POSITIONS = 24
app = typer.Typer(pretty_exceptions_enable=False)
for command in (fill, embed, export):
    app.command()(command)


def run(*words: object, given: str = ""):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(word) for word in words], input=given)


def write_run(folder: Path, name: str = "bert", sharing: Sharing = Sharing.NONE) -> Path:
    """A run with two checkpoints, the first of which was the better one."""
    recipe = member(name)
    small = Trunk(depth=2, width=16, heads=2, inner=32, pooled=recipe.trunk.pooled, sharing=sharing)
    recipe = replace(recipe, trunk=small)
    tokenizer = train(WordPiece(120, min_count=1), TEXTS)
    folder.mkdir()
    tokenizer.save(folder / "tokenizer.json")
    size = tokenizer.vocab.size
    said = {"kind": "pretrain", "recipe": encode(recipe), "fingerprint": fingerprint(recipe), "from": ""}
    said |= {"corpus": {"documents": 12, "tokens": 345}, "vocabulary": size, "positions": POSITIONS}
    (folder / "run.json").write_text(json.dumps(said))
    for step in (5, 10):
        learner = Learner(recipe.trunk, recipe.objectives, size, POSITIONS)
        learner.draw(step)
        save_checkpoint(folder / "checkpoints", learner.weights(), {}, State(Progress(step), Best(1.0, 5)))
    return folder

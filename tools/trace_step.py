"""Prints the files and functions of `unmask` that one training step on a CPU enters: `python tools/trace_step.py`.

A tiny network trains on some documents of the embedded newspaper. One step in the middle is traced (`sys.setprofile`),
in the main thread and in the thread that makes batches. Class bodies, lambdas and comprehensions do not count.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

import unmask
from unmask.data.corpus.corpus import Corpus
from unmask.data.text.sample_corpora import peoples_daily
from unmask.members import member
from unmask.train.batches.recipe_batches import RecipeBatches, require_trainable
from unmask.train.build_step import TrainingSpec
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.schedule import StepBudget

PACKAGE = Path(unmask.__file__).parent
STEPS, TRACED = 12, 8
"""Steps of the run, and the step that is traced."""


class Trace:
    """Counts the calls of functions of the package while it is on. It is also a listener of the run."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.on = False

    def __call__(self, line: dict[str, Any]) -> None:
        """A step was logged: the next one may be the one to trace."""
        if line.get("kind") == "step":
            self.on = line["step"] + 1 == TRACED

    def profile(self, frame: FrameType, event: str, arg: object) -> None:
        """An event of the interpreter."""
        if self.on and event == "call" and (name := _name(frame.f_code)):
            self.calls[name] += 1


def _name(code: CodeType) -> tuple[str, str] | None:
    """File and function, where a code object is a function of the package."""
    path = Path(code.co_filename)
    if not path.is_relative_to(PACKAGE) or "<" in code.co_name or code.co_name[0].isupper():
        return None
    return str(path.relative_to(PACKAGE)), code.co_qualname


def newspaper(folder: Path, documents: int) -> Corpus:
    """Some documents of the newspaper, prepared as a user would."""
    text = folder / "newspaper.txt"
    text.write_text("\n\n".join(document.text for document, _ in zip(peoples_daily(), range(documents), strict=False)))
    command = [sys.executable, "-m", "unmask", "prepare", str(text), "--for", "bert", "--out", str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True)
    return Corpus.open(folder / "data")


def training(name: str, corpus: Corpus) -> TrainingSpec:
    """A short training of a member in its smallest size."""
    recipe = member(name, "tiny")
    stage = replace(recipe.stages[0].resized(64, 8), fraction=1.0)
    recipe = replace(recipe, stages=(stage,))
    size = corpus.vocab.size
    model = MultiHeadModel(recipe.network, require_trainable(recipe.objectives), size, recipe.max_length)
    model.init_weights(0)
    batches = RecipeBatches.of(recipe, corpus, 0, heldout_fraction=0.1)
    return TrainingSpec(model=model, source=batches, optim=recipe.optim, budget=StepBudget(STEPS), seed=0)


def trace(name: str, documents: int) -> Counter[tuple[str, str]]:
    """The calls of one step."""
    found, cpu = Trace(), torch.device("cpu")
    with tempfile.TemporaryDirectory() as folder:
        made = training(name, newspaper(Path(folder), documents))
        threading.setprofile(found.profile)
        sys.setprofile(found.profile)
        try:
            run = RunConfig(device=cpu, num_evals=1)
            train(made, run, DistContext(0, 1, cpu), Path(folder) / "run", listeners=[found])
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
    return found.calls


def main() -> None:
    """Trace, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--member", default="bert")
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--functions", action="store_true", help="also list the functions of each file")
    wish = parser.parse_args()
    calls = trace(wish.member, wish.documents)
    files = Counter[str]()
    for (file, _), count in calls.items():
        files[file] += count
    for file in sorted(files):
        print(f"{files[file]:6d}  {file}")
        if wish.functions:
            for (other, function), count in sorted(calls.items()):
                if other == file:
                    print(f"        {count:6d}  {function}")
    print(f"{len(files)} files, {len(calls)} functions, {sum(calls.values())} calls")


if __name__ == "__main__":
    main()

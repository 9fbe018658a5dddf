"""What one or several processes make of the same steps; run as a script, this is one of the processes.

WORLD_SIZE=2 RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python shared_steps.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from law_nets import CPU, LENGTH, dry, fast, run_of, trained_members, training, two_tasks, worker_for
from safetensors.torch import save_file

from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RunPosition
from unmask.train.loop import train
from unmask.train.run_config import DistContext, init_distributed
from unmask.train.step import DeviceBatch

STEPS = 6
MICRO = 3 * LENGTH
"""Three rows at once, so that gradients are summed over micro-batches and over processes."""
GRADIENTS = "gradients.safetensors"


def subjects() -> Iterator[Recipe]:
    """Every member that can be trained, a mix of tasks, and a batch that two processes cannot share evenly."""
    for recipe in (*trained_members(), two_tasks()):
        if not getattr(recipe.network, "memory_length", 0):  # a network with memory trains in one process
            yield fast(dry(recipe), 3e-3)
    first = next(iter(trained_members()))
    yield fast(dry(replace(first, name="odd", stages=tuple(replace(one, batch_size=7) for one in first.stages))), 3e-3)


def do_all(folder: Path, processes: DistContext) -> None:
    """The gradients of a first step, and a short run, for every subject."""
    for recipe in subjects():
        home = folder / recipe.name
        gradients(recipe, home, processes)
        train(
            training(recipe, STEPS),
            run_of(microbatch_tokens=MICRO, num_evals=2, max_in_flight=2, save_every_minutes=0.001),
            processes,
            home,
        )


def gradients(recipe: Recipe, home: Path, processes: DistContext) -> None:
    """What a step would move the weights by."""
    made = training(recipe, STEPS)
    worker = worker_for(made, run_of(microbatch_tokens=MICRO), processes)
    lesson = made.source.batch(RunPosition(0, 0.0), processes.rank_split(MICRO))
    sums = worker.backward(DeviceBatch.of(lesson, CPU), processes.all_reduce_sum(list(lesson.num_predictions())), 0)
    total = processes.all_reduce_sum(sums.flatten().tolist())
    if processes.is_main:
        home.mkdir(parents=True)
        found = {name: p.grad for name, p in made.model.named_parameters() if p.grad is not None}
        save_file({**found, "sums": torch.tensor(total)}, home / GRADIENTS)


if __name__ == "__main__":
    where = Path(sys.argv[1])
    with init_distributed(CPU) as one_of_them:
        do_all(where, one_of_them)

"""Law 7, Split and run-blindness: however a step is cut into micro-batches, and whatever a run chooses, the same is
learned. (That two processes learn the same as one is held in tests/distributed.)"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import torch
from law_nets import (
    ALONE,
    BATCH,
    LENGTH,
    curve,
    dry,
    fast,
    losses,
    run_of,
    trained_members,
    training,
    uneven,
    worker_for,
)
from torch import Tensor

from unmask.tasks.recipe import Recipe
from unmask.train.batches.prefetch import Prefetcher
from unmask.train.batches.recipe_batches import RankSplit, RunPosition
from unmask.train.run_config import DistContext, Precision, RunConfig
from unmask.train.step import DeviceBatch

MEMBERS = [fast(dry(recipe), 3e-3) for recipe in trained_members()]
every_member = pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
SAME = 1e-5
"""Of a loss, summed in another order: float32 keeps seven digits."""
GRADIENT = 1e-4
"""Of the largest number in a gradient: its terms have both signs, and what they cancel takes digits with it."""
NEAR = 0.02
"""bfloat16 keeps three digits."""
STEPS = 6


def gradients(recipe: Recipe, micro: int) -> tuple[Tensor, Mapping[str, Tensor]]:
    """The sums of a step and its gradients, if at most `micro` tokens are computed at once."""
    made = training(recipe, STEPS)
    worker = worker_for(made, run_of(microbatch_tokens=micro))
    loaded = DeviceBatch.of(
        made.source.batch(uneven(made.source), RankSplit(microbatch_tokens=micro)), torch.device("cpu")
    )
    sums = worker.backward(loaded, loaded.step_batch.num_predictions(), 0)
    return sums, {name: p.grad for name, p in made.model.named_parameters() if p.grad is not None}


@every_member
@pytest.mark.parametrize("rows", [1, 3])
def test_loss_and_gradients_do_not_depend_on_micro_batches(recipe: Recipe, rows: int) -> None:
    whole, split = gradients(recipe, BATCH * LENGTH), gradients(recipe, rows * LENGTH)
    assert torch.allclose(whole[0], split[0], rtol=SAME)
    assert whole[1].keys() == split[1].keys()
    for name, gradient in whole[1].items():
        assert (gradient - split[1][name]).abs().max() <= GRADIENT * gradient.abs().max(), name
    assert all(gradient.abs().max() > 0 for name, gradient in whole[1].items() if "segment" not in name)


@every_member
def test_what_is_counted_beforehand_is_what_a_head_counts(recipe: Recipe) -> None:
    made = training(recipe, STEPS)
    lesson = made.source.batch(RunPosition(0, 0.0), RankSplit(microbatch_tokens=3 * LENGTH))
    terms = [made.model(batch, lesson.objectives) for batch in DeviceBatch.of(lesson, torch.device("cpu")).batches]
    assert len(terms) == 3
    assert lesson.num_predictions() == tuple(sum(term.count for term in column) for column in zip(*terms, strict=True))


@every_member
def test_accumulated_steps_follow_the_curve_of_whole_ones(recipe: Recipe, tmp_path: Path) -> None:
    whole = curve(recipe, STEPS, tmp_path / "1", microbatch_tokens=1 << 20)
    split = curve(recipe, STEPS, tmp_path / "4", microbatch_tokens=2 * LENGTH)
    assert [line["count"] for line in whole] == [line["count"] for line in split]
    assert losses(split) == pytest.approx(losses(whole), rel=SAME)
    assert [line["grad_norm"] for line in split] == pytest.approx([line["grad_norm"] for line in whole], rel=1e-3)


EVENED: tuple[dict[str, Any], ...] = ({"bucket_shapes": True}, {"cuda_graphs": True, "max_in_flight": 1})
"""With shapes that are rounded up; the second also with every step that comes again done in the places of the first."""


@every_member
@pytest.mark.parametrize("logistics", EVENED, ids=["evened", "recorded"])
def test_evened_batches_follow_the_curve_of_those_as_they_came(
    recipe: Recipe, logistics: dict[str, Any], tmp_path: Path
) -> None:
    plain = curve(recipe, STEPS, tmp_path / "plain", microbatch_tokens=3 * LENGTH)
    evened = curve(recipe, STEPS, tmp_path / "even", microbatch_tokens=3 * LENGTH, **logistics)
    assert [line["count"] for line in evened] == [line["count"] for line in plain]
    assert [line["tokens"] for line in evened] == [line["tokens"] for line in plain]
    assert losses(evened) == pytest.approx(losses(plain), rel=SAME)
    assert [line["grad_norm"] for line in evened] == pytest.approx([line["grad_norm"] for line in plain], rel=1e-3)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@every_member
def test_lessons_from_a_process_of_their_own_are_the_same(recipe: Recipe, device: str, tmp_path: Path) -> None:
    if device != "cpu" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    where = torch.device(device)
    here = curve(recipe, STEPS, tmp_path / "here", device=where)
    there = curve(recipe, STEPS, tmp_path / "there", device=where, batch_worker_process=True)
    assert losses(there) == (losses(here) if device == "cpu" else pytest.approx(losses(here), rel=SAME))


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@every_member
def test_recorded_steps_draw_what_plain_steps_of_the_same_shapes_draw(
    recipe: Recipe, device: str, tmp_path: Path
) -> None:
    """Dropout is on: a repetition has the draws of its own step, not those of the step that was recorded."""
    if device != "cpu" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    wet = replace(recipe, network=recipe.network.with_dropout(0.1))
    where = torch.device(device)
    plain = curve(wet, STEPS, tmp_path / "plain", device=where, bucket_shapes=True)
    recorded = curve(wet, STEPS, tmp_path / "recorded", device=where, cuda_graphs=True, max_in_flight=2)
    assert losses(recorded) == pytest.approx(losses(plain), rel=SAME)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@every_member
def test_recorded_steps_on_a_device_follow_the_curve_of_those_that_are_not(recipe: Recipe, tmp_path: Path) -> None:
    device = torch.device("cuda", 0)
    plain = curve(recipe, STEPS, tmp_path / "plain", device=device, bucket_shapes=True)
    recorded = curve(recipe, STEPS, tmp_path / "recorded", device=device, cuda_graphs=True, max_in_flight=2)
    assert losses(recorded) == pytest.approx(losses(plain), rel=SAME)


@pytest.mark.parametrize(
    "logistics",
    [
        {"num_evals": 6},
        {"keep_checkpoints": 5, "save_every_minutes": 0.0},
        {"microbatch_tokens": 1},
        {"microbatch_tokens": 1 << 40},
        {"max_in_flight": 2},
    ],
    ids=lambda logistics: ", ".join(logistics),
)
def test_nothing_in_a_run_changes_the_curve(logistics: dict[str, Any], tmp_path: Path) -> None:
    plain = curve(MEMBERS[0], STEPS, tmp_path / "plain")
    assert losses(curve(MEMBERS[0], STEPS, tmp_path / "other", **logistics)) == pytest.approx(losses(plain), rel=SAME)


@pytest.mark.skipif(not (which("c++") or which("g++")), reason="torch's compiler needs one for C++")
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of what torch itself does
@pytest.mark.parametrize("even", [False, True])
def test_a_compiled_network_follows_the_same_curve(tmp_path: Path, even: bool) -> None:
    plain = curve(MEMBERS[0], STEPS, tmp_path / "plain")
    compiled = curve(MEMBERS[0], STEPS, tmp_path / "compiled", compile=True, bucket_shapes=even)
    assert losses(compiled) == pytest.approx(losses(plain), rel=SAME)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@every_member
def test_no_queued_step_waits_for_the_device(recipe: Recipe) -> None:
    device = torch.device("cuda", 0)
    made = training(recipe, STEPS)
    run = RunConfig(device=device, precision=Precision.BFLOAT16, max_in_flight=2)
    worker = worker_for(made, run, DistContext(0, 1, device))
    with Prefetcher.open(made.source, RankSplit(), run) as loader:
        for step in range(3):
            if step and worker.max_in_flight:
                torch.cuda.set_sync_debug_mode("error")
            try:
                loaded, _ = loader.request(RunPosition(step, 0.0)).wait()
                said = worker.apply_gradients(worker.backward(loaded, loaded.step_batch.num_predictions(), step))
            finally:
                torch.cuda.set_sync_debug_mode("default")
            assert all(map(math.isfinite, said.read()))


@every_member
def test_half_precision_stays_near_the_curve(recipe: Recipe, tmp_path: Path) -> None:
    exact = curve(recipe, STEPS, tmp_path / "exact")
    half = curve(recipe, STEPS, tmp_path / "half", precision=Precision.BFLOAT16)
    assert losses(half) == pytest.approx(losses(exact), rel=NEAR)
    assert losses(half) != losses(exact)


def test_dropout_is_drawn_from_the_address_of_a_step(tmp_path: Path) -> None:
    """The same step drops the same, whoever drew before; another step drops something else."""
    recipe = trained_members()[0]
    made = training(recipe, STEPS)
    worker = worker_for(made, run_of())
    loaded = DeviceBatch.of(made.source.batch(RunPosition(0, 0.0), RankSplit()), torch.device("cpu"))
    found = []
    for step in (0, 0, 1):
        torch.rand(7)
        found.append(worker.backward(loaded, loaded.step_batch.num_predictions(), step)[0])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert worker.dist is ALONE

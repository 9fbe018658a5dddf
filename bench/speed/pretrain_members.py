"""Every member on one device, with real text through the real loader: what `pretrain_gpu.py --members` measures.

What arrives: a prepared corpus. What leaves: one line for each member, size, row length and way to compute: real tokens
a second, the share of a step that waited for data, what the host did meanwhile, memory, and the share of the measured
rate of a large product.
Operations are counted as papers count them, with the last block at all places; so are ceilings.
What never happens here: a member by name. The family is walked, and each is trained as its recipe says: its own task,
optimizer and dropout, in the size that was asked for. A member that the corpus was not prepared for is named and left.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from bench.speed.common.ceiling import least_seconds
from bench.speed.common.kernel_profile import tell
from bench.speed.common.timing import Timed, clean, learn, settle
from unmask.core.errors import UserError
from unmask.data.corpus.corpus import Corpus
from unmask.members import member, members, sizes
from unmask.nets.batch.transfer import batch_to_device
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RankSplit, RecipeBatches, RunPosition, require_trainable
from unmask.train.build_step import build_step_runner
from unmask.train.flops_meter import FlopsMeter, workload_of
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, Precision, RunConfig, kernels_usable, pick_queue
from unmask.train.step import DeviceBatch, StepRunner

SEED = 1
HEAD = (
    f"{'member':>10} {'size':>6} {'rows':>8} {'how':18} {'tokens/s':>11} {'ms/step':>8} {'waited':>7} {'lost':>6} "
    f"{'made':>5} {'asked':>5} {'GiB':>6} {'TFLOP/s':>8} {'of peak':>8} {'ceiling':>11} {'of it':>8} {'loss':>7}"
)


@dataclass(frozen=True)
class Found:
    """What was measured of one member."""

    member: str
    size: str
    rows: str
    how: str
    tokens_per_second: float
    ms_per_step: float
    waited: float
    """The share of a step that the host waited for its lesson."""
    lost: float
    """The share of a step that it is faster by if its lesson lies ready."""
    made: float
    """Milliseconds until a lesson lay ready, while steps were taken."""
    asking: float
    """Milliseconds that the host took to ask the device for a step."""
    gib: float
    tflops: float
    of_peak: float
    ceiling: float
    """Tokens a second that the device could learn from at most (`ceiling.py`)."""
    loss: float

    def line(self) -> str:
        """One line of the table."""
        return (
            f"{self.member:>10} {self.size:>6} {self.rows:>8} {self.how:18} {self.tokens_per_second:>11,.0f} "
            f"{self.ms_per_step:>8.1f} {100 * self.waited:>6.2f}% {100 * self.lost:>5.1f}% "
            f"{self.made:>5.1f} {self.asking:>5.1f} {self.gib:>6.1f} {self.tflops:>8.2f} {100 * self.of_peak:>7.1f}% "
            f"{self.ceiling:>11,.0f} {100 * self.tokens_per_second / self.ceiling:>7.1f}% {self.loss:>7.3f}"
        )


def measure_members(wish: argparse.Namespace, peak: float) -> Iterator[Found]:
    """All members, or those that were asked for, one after the other."""
    corpus = Corpus.open(wish.data)
    print(HEAD)
    for name in wish.members or [recipe.name for recipe in members()]:
        for size in (one for one in wish.sizes if one in sizes(name)):
            for length in wish.lengths:
                recipe = one_stage(member(name, size), length, wish.rows or max(wish.tokens // length, 1))
                try:
                    course = RecipeBatches.of(recipe, corpus, SEED)
                except UserError as error:
                    print(f"{name:>10} {size:>6}  left out: {error}")
                    continue
                yield from _each_way(recipe, course, size, wish, peak)


def one_stage(recipe: Recipe, length: int, batch: int) -> Recipe:
    """The member on the tasks of its longest stage, with rows and batches of the given size."""
    main = max(recipe.stages, key=lambda stage: stage.fraction)
    return replace(recipe, stages=(replace(main, max_length=length, batch_size=batch, fraction=1.0),))


def _each_way(
    recipe: Recipe, course: RecipeBatches, size: str, wish: argparse.Namespace, peak: float
) -> Iterator[Found]:
    """As it is and compiled; both with steps that are recorded and repeated, if that is wished for."""
    device = torch.device(wish.device)
    vocabulary = next(iter(course.task_batches.values())).corpus.vocab.size
    meter = FlopsMeter.of(course, vocabulary)
    recorded = wish.graphs
    for compiled in (False, True) if wish.compile else (False,):
        clean(device)
        run = RunConfig(
            device=device,
            precision=Precision.BFLOAT16,
            microbatch_tokens=1 << 40,
            compile=compiled,
            bucket_shapes=wish.even,
            cuda_graphs=recorded,
            triton_kernels=kernels_usable(device) and not wish.plain,
            generator_stream=wish.aside and not wish.plain,
            sparse_last_block=not wish.plain,
            max_in_flight=max(pick_queue(device), int(recorded)),
            batch_worker_process=wish.loader_process and recorded and device.type == "cuda",
        )
        worker = worker_of(recipe, course, vocabulary, run)
        timed = learn(worker, course, wish.steps)
        found = _found(recipe, timed, meter, vocabulary, peak)
        how = ("compiled" if compiled else "eager") + (f", {timed.shapes:>2} shapes" if recorded else "")
        yield replace(found, size=size, how=how)
        if wish.profile:
            print("\n".join(_profiled(worker, course)))


def _profiled(worker: StepRunner, course: RecipeBatches) -> Iterator[str]:
    """Where the time of one step goes, on the host and on the device."""
    yield _made(worker, course)
    loaded = DeviceBatch.of(
        course.batch(RunPosition(0, 0.0), RankSplit()), worker.config.device, worker.config.has_few_shapes
    )
    yield from tell(
        lambda: worker.apply_gradients(worker.backward(loaded, loaded.step_batch.num_predictions(), 0)),
        worker.config.device,
    )


def _made(worker: StepRunner, course: RecipeBatches, count: int = 10) -> str:
    """How long the loader takes for a lesson while nobody else asks for the host."""
    run, at = worker.config, [time.perf_counter()]
    lessons = [course.batch(RunPosition(step, 0.0), RankSplit()) for step in range(count)]
    at.append(time.perf_counter())
    host = [DeviceBatch.of(lesson, torch.device("cpu"), run.has_few_shapes) for lesson in lessons]
    at.append(time.perf_counter())
    for loaded in host:
        for batch in loaded.batches:
            batch_to_device(batch, run.device)
    settle(run.device)
    at.append(time.perf_counter())
    rows, tensors, sending = (1000 * (end - start) / count for start, end in pairwise(at))
    return f"a lesson takes {rows:.2f} ms for its rows, {tensors:.2f} for its tensors and {sending:.2f} to be sent"


def worker_of(recipe: Recipe, course: RecipeBatches, vocabulary: int, run: RunConfig) -> StepRunner:
    """Whoever learns from a course."""
    learner = MultiHeadModel(
        recipe.network, require_trainable(recipe.objectives), vocabulary, recipe.max_length, recipe.loss_weighting
    )
    learner.init_weights(SEED)
    return build_step_runner(learner, recipe.optim, course.heads_vary, SEED, run, DistContext(0, 1, run.device))


def _found(recipe: Recipe, timed: Timed, meter: FlopsMeter, vocabulary: int, peak: float) -> Found:
    """Operations are counted for the very rows that were computed."""
    stage = recipe.stages[0]
    loads = [workload_of(one.instances[0], one.objectives, one.attention.isolate_documents) for one in timed.lessons]
    tflops = sum(map(meter.step, loads)) / len(timed.lessons) / timed.seconds / 1e12
    least = sum(least_seconds(recipe, vocabulary, load) for load in loads) / len(loads)
    return Found(
        member=recipe.name,
        size="",
        rows=f"{stage.batch_size}x{stage.max_length}",
        how="",
        tokens_per_second=timed.tokens / timed.seconds,
        ms_per_step=1000 * timed.seconds,
        waited=timed.stalled,
        lost=timed.lost,
        made=1000 * timed.made,
        asking=1000 * timed.asking,
        gib=timed.gib,
        tflops=tflops,
        of_peak=tflops / peak,
        ceiling=timed.tokens / least,
        loss=timed.loss,
    )

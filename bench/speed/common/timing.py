"""What the benchmarks of a device share: how fast it multiplies, how long steps take, and what it holds meanwhile.

What arrives: a worker and a course, as `unmask pretrain` has them. What leaves: seconds a step, and how many of them
were spent on waiting for lessons.
What never happens here: another loop than the real one's way of going: lessons come from the real loader, made in the
background while the step before is computed, and numbers are looked at when the run's queue is full.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from unmask.core.records import InputsAndTargets
from unmask.train.batches.prefetch import PendingBatch, Prefetcher
from unmask.train.batches.recipe_batches import SINGLE_PROCESS, BatchSource, RankSplit, RunPosition, StepBatch
from unmask.train.gpu_async import CudaGraphCache
from unmask.train.step import AsyncScalars, DeviceBatch, StepRunner, set_lr

WARM = 4
"""Steps before the clock starts: they compile, choose kernels and fill caches."""
QUIET, SECONDS, PATIENT = 48, 3.0, 2000
"""Where steps are recorded, the clock starts when so many have come in known shapes, for so long at least, so that no
step is recorded while it runs; or when so many were taken."""


@dataclass(frozen=True)
class Turns:
    """A batch source of given rows: what `make` returns for the number of a step."""

    make: Callable[[int], InputsAndTargets]
    like: StepBatch
    """A batch with the same objectives; its rows do not count."""
    heads_vary: bool = False

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """The rows of a step, all at once."""
        like = self.like
        return StepBatch((self.make(position.step),), like.objectives, like.attention, like.task_name, like.max_length)

    def stage_at(self, progress: float) -> int:
        """There is one stage."""
        return 0

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """No held-out rows."""
        return ()


@dataclass(frozen=True)
class Timed:
    """What some steps took. Everything but the loss and the memory is the mean over them."""

    seconds: float
    waited: float
    """Seconds that the host waited for a lesson. The device may have been busy meanwhile, so it lost at most that."""
    ready: float
    """Seconds of the same steps once more, with lessons that lie ready: nobody makes any meanwhile."""
    tokens: float
    loss: float
    gib: float
    lessons: tuple[StepBatch, ...] = ()
    places: float = 0.0
    """Tokens that were computed: those of the lessons, and what filled batches up to round shapes."""
    shapes: int = 0
    """In how many shapes batches came, where steps are recorded."""
    made: float = 0.0
    """Seconds from the beginning of a lesson until it lay ready, while steps were taken."""
    asking: float = 0.0
    """Seconds that the host took to ask the device for a step."""

    @property
    def stalled(self) -> float:
        """The share of a step that was spent on waiting for its lesson."""
        return self.waited / self.seconds

    @property
    def lost(self) -> float:
        """The share of a step that goes to its lesson's being made meanwhile; below 0 if the clock was not even."""
        return 1 - self.ready / self.seconds


class Mark:
    """A moment: on a GPU that at which everything is done that was queued before, so that nobody has to wait for it."""

    def __init__(self, device: torch.device) -> None:
        self.event = torch.cuda.Event(enable_timing=True) if device.type == "cuda" else None
        if self.event:
            self.event.record()
        self.clock = time.perf_counter()

    def until(self, end: Mark) -> float:
        """Seconds until a later moment."""
        if self.event and end.event:
            end.event.synchronize()
            return self.event.elapsed_time(end.event) / 1000
        return end.clock - self.clock


def learn(worker: StepRunner, course: BatchSource, steps: int) -> Timed:
    """Take steps as the loop does, the last ones on the clock."""
    device, crew = (
        worker.config.device,
        RankSplit(SINGLE_PROCESS.rank, SINGLE_PROCESS.world_size, worker.config.microbatch_tokens),
    )
    queued: deque[tuple[AsyncScalars, float]] = deque()
    lessons: list[StepBatch] = []
    waits: list[float] = []
    places: list[int] = []
    made: list[float] = []
    asking: list[float] = []
    recorded = isinstance(worker.graph_cache, CudaGraphCache)
    enough, seconds = (QUIET, SECONDS) if recorded else (WARM, 0.0)
    shapes, quiet, since = _shapes(worker), -1, time.perf_counter()
    began: Mark | None = None
    set_lr(worker.optimizer, 1.0)
    with Prefetcher.open(course, crew, worker.config) as loader:
        coming = _asked(loader, 0, made)
        for step in range(PATIENT + steps):
            quiet, since = (quiet + 1, since) if _shapes(worker) == shapes else (0, time.perf_counter())
            shapes = _shapes(worker)
            known = quiet >= enough and time.perf_counter() >= since + seconds
            if began is None and (known or step == PATIENT):
                began = Mark(device)
                waits, lessons, places, asking = [], [], [], []
                made.clear()
            loaded, waited = coming.wait()
            coming = _asked(loader, step + 1, made)
            counts, before = loaded.step_batch.num_predictions(), time.perf_counter()
            queued.append((worker.run(loaded, counts, step), max(counts[0], 1)))
            asking.append(time.perf_counter() - before)
            if len(queued) > worker.max_in_flight:
                said, count = queued.popleft()
                loss = said.read()[1] / count
            waits.append(waited)
            places.append(sum(len(batch.tokens.ids_T) for batch in loaded.batches))
            lessons.append(loaded.step_batch)
            if began and len(lessons) == steps:
                break
        assert began is not None
        seconds = began.until(Mark(device)) / steps
    loss = [said.read()[1] / count for said, count in queued][-1] if queued else loss
    most, shapes = gib(device), _shapes(worker)
    ready = _again(worker, lessons, step)
    tokens, waited, filled = (sum(some) / steps for some in ([one.num_tokens for one in lessons], waits, places))
    host = (sum(some) / max(len(some), 1) for some in (made, asking))
    return Timed(seconds, waited, ready, tokens, loss, most, tuple(lessons), filled, shapes[0], *host)


def _asked(loader: Prefetcher, step: int, made: list[float]) -> PendingBatch:
    """A lesson that is being made; how long the one takes that is begun meanwhile will be noted."""
    began = time.perf_counter()
    coming = loader.request(RunPosition(step, 0.0))
    assert loader.prefetched
    loader.prefetched.future.add_done_callback(lambda _: made.append(time.perf_counter() - began))
    return coming


def _again(worker: StepRunner, lessons: Sequence[StepBatch], step: int) -> float:
    """Seconds of a step from lessons that lie ready."""
    held = [DeviceBatch.of(lesson, worker.config.device, worker.config.has_few_shapes) for lesson in lessons]
    queued: deque[AsyncScalars] = deque()
    settle(worker.config.device)
    began = Mark(worker.config.device)
    for loaded in held:
        queued.append(worker.run(loaded, loaded.step_batch.num_predictions(), step))
        if len(queued) > worker.max_in_flight:
            queued.popleft().read()
    return began.until(Mark(worker.config.device)) / len(held)


def _shapes(worker: StepRunner) -> tuple[int, int]:
    """In how many shapes batches came, and for how many of them a step was recorded."""
    repeats = worker.graph_cache
    return (len(repeats.seen_shapes), len(repeats.captured)) if isinstance(repeats, CudaGraphCache) else (0, 0)


def matmul_rate(device: torch.device) -> float:
    """TFLOP/s of a large product of square matrices in bfloat16: what counts as all that the device can do."""
    size, repeats = (8192, 20) if device.type == "cuda" else (512, 3)
    one, other = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        one @ other
    settle(device)
    began = time.perf_counter()
    for _ in range(repeats):
        one @ other
    settle(device)
    return 2 * size**3 * repeats / (time.perf_counter() - began) / 1e12


def settle(device: torch.device) -> None:
    """Wait until the device has done everything."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def clean(device: torch.device) -> None:
    """Leave the next side an empty device."""
    torch.compiler.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def gib(device: torch.device) -> float:
    """The most memory that tensors took on the device since it was cleaned; 0 for a CPU."""
    return torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0

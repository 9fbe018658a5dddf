"""Work on a device that is recorded when it comes again in the same shapes, and repeated from then on.

What arrives: work as a function of a value whose tensors it reads, and one value after another. What leaves: what the
work returns, in a tensor that the next repetition may overwrite.
What never happens here: work that was not asked for. The first value of a kind is worked on as it is, so that whatever
has to be made once (compiled code, work spaces) is made then; with the second the work is recorded, which does nothing
yet, and then repeated, as with all that follow.

A GPU is given a recording as a whole (a CUDA graph), so that no kernel waits for its launch. Elsewhere nothing can be
recorded, and the work is done again in the same places: slower than without, but the bookkeeping is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from unmask.nets.batch.transfer import clone, copy_into, shape_key

V = TypeVar("V")
_MAX_GRAPHS = 256
"""Recordings that are kept; values of other shapes are worked on as they come."""


@dataclass(frozen=True, slots=True)
class CapturedStep(Generic[V]):
    """Work that reads from and writes to places of its own."""

    static_inputs: V
    replay: Callable[[], Tensor]

    def __call__(self, value: V) -> Tensor:
        """Put the value in its places, and repeat."""
        copy_into(self.static_inputs, value)
        return self.replay()


@dataclass(slots=True)
class CudaGraphCache(Generic[V]):
    """Work, and what was recorded of it."""

    work: Callable[[V], Tensor]
    device: torch.device
    seen_shapes: set[Hashable] = field(default_factory=set)
    """Kinds of values that came once at least, by what values of a kind have in common."""
    captured: dict[Hashable, CapturedStep[V]] = field(default_factory=dict)
    pool: Any = None
    """The memory that all recordings share; only one of them runs at a time."""
    stream: Any = None
    """The one on which all of them are recorded, as memory that is shared asks for."""

    def __call__(self, value: V) -> Tensor:
        """What the work returns for a value."""
        kind = shape_key(value)
        if kind not in self.captured:
            if kind not in self.seen_shapes or len(self.captured) >= _MAX_GRAPHS:
                self.seen_shapes.add(kind)
                return self.work(value)
            self.captured[kind] = self._capture(value)
        return self.captured[kind](value)

    def _capture(self, value: V) -> CapturedStep[V]:
        places = clone(value)
        repeat = self._graph(places) if self.device.type == "cuda" else partial(self.work, places)
        return CapturedStep(places, repeat)

    def _graph(self, places: V) -> Callable[[], Tensor]:
        with torch.cuda.device(self.device):  # a capture is one of the current device's
            self.pool = self.pool or torch.cuda.graph_pool_handle()
            self.stream = self.stream or torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            graph = torch.cuda.CUDAGraph()
            # Thread-local: a lesson may be made in another thread, which allocates and copies meanwhile.
            with torch.cuda.graph(graph, self.pool, self.stream, capture_error_mode="thread_local"):
                result = self.work(places)

        def repeat() -> Tensor:
            graph.replay()
            return result

        return repeat

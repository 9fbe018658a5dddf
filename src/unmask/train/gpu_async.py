"""Asynchronous work of a GPU: a side stream, and CUDA graphs.

- `SideStream` runs the backward pass of a generator on a CUDA stream of its own.
- `CudaGraphCache` captures a step when its shapes come for the second time, and replays it from then on. On a CPU there
  is no graph: the work runs again on the static inputs, so the bookkeeping is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from unmask.nets.batch.batch import Batch
from unmask.nets.batch.transfer import clone, copy_into, shape_key, storages
from unmask.objectives.heads.common import LossSum


@dataclass(frozen=True, slots=True)
class SideStream:
    """Where work ahead of the trunk is done: on a stream of its own, or where everything is done."""

    streams: tuple[torch.cuda.Stream, ...] = ()
    """The stream; none, where there is nothing to be gained."""

    @staticmethod
    def on(device: torch.device) -> SideStream:
        """A stream of its own."""
        # Embeddings that both networks share get gradients from both streams, which torch would warn of.
        torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
        return SideStream((torch.cuda.Stream(device),))  # type: ignore[no-untyped-call]

    def run(self, module: nn.Module, batch: Batch, shared: Iterable[Tensor]) -> tuple[LossSum, Batch]:
        """What the work makes of a batch. `shared`: parameters that the trunk may read as well."""
        return self._run_on_stream(module, batch, shared) if self.streams else module(batch)

    def _run_on_stream(self, work: nn.Module, batch: Batch, shared: Iterable[Tensor]) -> tuple[LossSum, Batch]:
        (stream,) = self.streams
        kernels = torch.cuda.current_stream(stream.device)
        # Gradients are gathered on the stream that first reads a parameter: there the trunk's come first, so that the
        # other stream need not wait for them before it sets out.
        first = [parameter.view_as(parameter) for parameter in shared if parameter.requires_grad]
        stream.wait_stream(kernels)
        with torch.cuda.stream(stream):
            term, made = work(batch)
        kernels.wait_stream(stream)
        del first
        # Memory is the stream's that asked for it, and given away when the host is done with it: copies of weights on
        # the way back, while they are read here; what was made here, while the trunk reads it.
        for weight in (one for one in work.parameters() if not one.is_leaf):
            weight.record_stream(stream)
        known = {piece.data_ptr() for piece in storages(batch)}
        for piece in (one for one in storages(made) if one.data_ptr() not in known):
            piece.record_stream(kernels)
        return term, made

    def wait(self) -> None:
        """Let the kernels that are queued from now on wait for those of the way back."""
        for stream in self.streams:
            torch.cuda.current_stream(stream.device).wait_stream(stream)


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

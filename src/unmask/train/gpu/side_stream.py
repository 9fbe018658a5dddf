"""A second stream of a GPU, on which a network ahead of the trunk goes its way, there and back.

What arrives: work ahead of the trunk, and the batch that it reads. What leaves: what it said, and the batch that the
trunk reads; the trunk's kernels wait for both.
What never happens here: another number, or memory that is given away while the other stream still reads it.

torch goes back on the stream on which it came. No gradient goes through a draw, so the way back of a generator and that
of the trunk know nothing of each other; beside each other they fill a GPU that one of them would leave half empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unmask.nets.batch.batch import Batch
from unmask.nets.batch.transfer import storages
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

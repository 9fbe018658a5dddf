"""The same network on both sides: ours with its training step, and `BertForMaskedLM` in the best plain PyTorch loop.

What arrives: a size, a vocabulary, and how to compute. What leaves: two sides that take a step and say their loss.
What never happens here: help or hindrance. Both begin with the same weights, both use fused AdamW with the same numbers
and clip at 1; theirs runs with SDPA, compiled if asked for as `torch.compile` does it by default (no CUDA graphs, which
small networks would gain from), ours as `unmask pretrain` runs it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from timing import WARM, Mark
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from unmask.dialect import Dialect
from unmask.export.architecture import Architecture, Purpose
from unmask.export.learned import model_of
from unmask.export.settings import write_config
from unmask.export.write import their_weights
from unmask.nets.sizes import SIZES
from unmask.nets.trunk import Trunk
from unmask.objectives.mlm import MLM
from unmask.optimising import AdamW, Constant, Descent
from unmask.records import Instance
from unmask.train.course import Lesson
from unmask.train.learner import Learner
from unmask.train.processes import Processes
from unmask.train.run import Precision, Run, choose_fused, choose_queue
from unmask.train.step import Loaded, Worker
from unmask.train.worker import make_worker

POSITIONS = 512
SEED = 1
ADAM = AdamW(rate=2e-4, correct_bias=True)
LEARNS = (MLM(),)


@dataclass(frozen=True)
class How:
    """Which network, and how it is computed."""

    size: str
    vocabulary: int
    device: torch.device
    half: bool = False
    """Whether matrix products are in bfloat16."""
    compiled: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.1
    fused: bool = True
    """Whether ours takes kernels of its own, where there are some."""
    sparing: bool = True
    """Whether ours computes its last block only where it is read."""
    graphs: bool = False
    """Whether our steps are recorded and repeated as a whole, as `unmask pretrain` does on a GPU."""

    @property
    def trunk(self) -> Trunk:
        """BERT in this size."""
        size = SIZES[self.size]
        return Trunk(
            depth=size.depth,
            width=size.width,
            heads=size.heads,
            inner=size.inner,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
        )

    @property
    def run(self) -> Run:
        """The same as our training takes it."""
        precision = Precision.BFLOAT16 if self.half else Precision.FLOAT32
        return Run(
            device=self.device,
            precision=precision,
            compile=self.compiled,
            fused=self.fused and choose_fused(self.device),
            sparing=self.sparing,
            graphs=self.graphs,
            queue=max(choose_queue(self.device), int(self.graphs)),
            loader_process=self.graphs and self.device.type == "cuda",
        )

    def learner(self) -> Learner:
        """The network with newly drawn weights, always the same."""
        learner = Learner(self.trunk, LEARNS, self.vocabulary, POSITIONS)
        learner.draw(SEED)
        return learner


@dataclass
class Ours:
    """Our step: the very function that `unmask pretrain` calls."""

    worker: Worker
    taken: int = 0

    @staticmethod
    def of(how: How) -> Ours:
        """A side that is ready to learn."""
        alone = Processes(0, 1, how.device)
        return Ours(make_worker(how.learner(), Descent(ADAM, Constant()), False, SEED, how.run, alone))

    def load(self, instance: Instance, length: int, apart: bool = False) -> Loaded:
        """Tensors on the device."""
        run = self.worker.run
        return Loaded.of(Lesson((instance,), LEARNS, apart, "cloze", length), run.device, run.fixed)

    def step(self, loaded: Loaded) -> Tensor:
        """One step; the mean loss stays on the device."""
        counts = loaded.lesson.asked()
        sums = self.worker.backward(loaded, counts, self.taken)
        self.worker.move(sums)
        self.taken += 1
        return sums[0, 0] / counts[0]


@dataclass
class Theirs:
    """`BertForMaskedLM` in a plain loop."""

    model: torch.nn.Module
    called: torch.nn.Module
    optimizer: torch.optim.Optimizer
    run: Run

    @staticmethod
    def of(how: How) -> Theirs:
        """A side that begins with the same weights as ours."""
        learner = how.learner()
        ours = model_of(learner.weights(), how.trunk, how.vocabulary, POSITIONS)
        config = BertConfig(
            **write_config(ours, 0, Architecture(Dialect.BERT, Purpose.MASKED_LM)), attn_implementation="sdpa"
        )
        model = BertForMaskedLM(config)
        left = model.load_state_dict(their_weights(ours, Architecture(Dialect.BERT, Purpose.MASKED_LM)), strict=False)
        model.tie_weights()
        missing = [name for name in left.missing_keys if "decoder" not in name]
        assert not missing, missing
        assert not left.unexpected_keys, left.unexpected_keys
        model.to(how.device).train()
        called = torch.compile(model) if how.compiled else model
        return Theirs(model, called, their_adam(model), how.run)

    def load(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors on the device."""
        device = self.run.device
        pinned = device.type == "cuda"
        return {
            name: (tensor.pin_memory() if pinned else tensor).to(device, non_blocking=True)
            for name, tensor in batch.items()
        }

    def step(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One step; the mean loss stays on the device."""
        with self.run.autocast():
            loss: Tensor = self.called(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


def their_adam(model: torch.nn.Module) -> torch.optim.Optimizer:
    """The usual groups: norms and biases do not decay."""
    whole = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": whole, "weight_decay": ADAM.decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=ADAM.rate, betas=ADAM.betas, eps=ADAM.epsilon, fused=True)


def repeat(theirs: Theirs, batches: Sequence[Mapping[str, Tensor]], steps: int) -> tuple[float, float]:
    """Seconds of a step of theirs on batches that lie ready, in turns, after some that warm up; and the last loss.

    The median of the steps: whatever is compiled late counts for nothing.
    """
    marks = []
    for turn in range(WARM + steps):
        if turn >= WARM:
            marks.append(Mark(theirs.run.device))
        loss = theirs.step(theirs.load(batches[turn % len(batches)]))
    marks.append(Mark(theirs.run.device))
    return statistics.median(start.until(end) for start, end in pairwise(marks)), float(loss)


@torch.no_grad()
def apart(ours: Ours, theirs: Theirs, loaded: Loaded, batch: Mapping[str, Tensor]) -> float:
    """How far the losses of both lie from each other on the same masked rows, with nothing dropped out."""
    learner = ours.worker.learner
    learner.eval()
    theirs.model.eval()
    (term,) = learner(loaded.batches[0], LEARNS)
    difference = term.total / term.count - theirs.model(**batch).loss
    learner.train()
    theirs.model.train()
    return abs(float(difference))

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
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from bench.speed.common.timing import WARM, Mark
from unmask.config.attention_pattern import FULL, WITHIN_DOCUMENT
from unmask.config.model_type import ModelType
from unmask.config.network import TransformerConfig
from unmask.config.optim import AdamW, Constant, OptimConfig
from unmask.config.sizes import SIZES
from unmask.core.records import InputsAndTargets
from unmask.interop.hf.config_json import write_config
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import to_hf_state_dict
from unmask.loading.from_checkpoint import model_from_state
from unmask.objectives.mlm import MLM
from unmask.train.batches.recipe_batches import StepBatch
from unmask.train.build_step import build_step_runner
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, Precision, RunConfig, kernels_usable, pick_queue
from unmask.train.step import DeviceBatch, StepRunner

POSITIONS = 512
SEED = 1
ADAM = AdamW(lr=2e-4, bias_correction=True)
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
    def trunk(self) -> TransformerConfig:
        """BERT in this size."""
        size = SIZES[self.size]
        return TransformerConfig(
            depth=size.depth,
            width=size.width,
            heads=size.heads,
            ffn_width=size.ffn_width,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
        )

    @property
    def run(self) -> RunConfig:
        """The same as our training takes it."""
        precision = Precision.BFLOAT16 if self.half else Precision.FLOAT32
        return RunConfig(
            device=self.device,
            precision=precision,
            compile=self.compiled,
            triton_kernels=self.fused and kernels_usable(self.device),
            sparse_last_block=self.sparing,
            cuda_graphs=self.graphs,
            max_in_flight=max(pick_queue(self.device), int(self.graphs)),
            batch_worker_process=self.graphs and self.device.type == "cuda",
        )

    def learner(self) -> MultiHeadModel:
        """The network with newly drawn weights, always the same."""
        learner = MultiHeadModel(self.trunk, LEARNS, self.vocabulary, POSITIONS)
        learner.init_weights(SEED)
        return learner


@dataclass
class Ours:
    """Our step: the very function that `unmask pretrain` calls."""

    worker: StepRunner
    taken: int = 0

    @staticmethod
    def of(how: How) -> Ours:
        """A side that is ready to learn."""
        alone = DistContext(0, 1, how.device)
        return Ours(build_step_runner(how.learner(), OptimConfig(ADAM, Constant()), False, SEED, how.run, alone))

    def load(self, instance: InputsAndTargets, length: int, apart: bool = False) -> DeviceBatch:
        """Tensors on the device."""
        run = self.worker.config
        return DeviceBatch.of(
            StepBatch((instance,), LEARNS, WITHIN_DOCUMENT if apart else FULL, "cloze", length),
            run.device,
            run.has_few_shapes,
        )

    def step(self, loaded: DeviceBatch) -> Tensor:
        """One step; the mean loss stays on the device."""
        counts = loaded.step_batch.num_predictions()
        sums = self.worker.backward(loaded, counts, self.taken)
        self.worker.apply_gradients(sums)
        self.taken += 1
        return sums[0, 0] / counts[0]


@dataclass
class Theirs:
    """`BertForMaskedLM` in a plain loop."""

    model: torch.nn.Module
    called: torch.nn.Module
    optimizer: torch.optim.Optimizer
    run: RunConfig

    @staticmethod
    def of(how: How) -> Theirs:
        """A side that begins with the same weights as ours."""
        learner = how.learner()
        ours = model_from_state(learner.named_weights(), how.trunk, how.vocabulary, POSITIONS)
        config = BertConfig(
            **write_config(ours, 0, Architecture(ModelType.BERT, HFTask.MASKED_LM)), attn_implementation="sdpa"
        )
        model = BertForMaskedLM(config)
        left = model.load_state_dict(
            to_hf_state_dict(ours, Architecture(ModelType.BERT, HFTask.MASKED_LM)), strict=False
        )
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
    groups = [{"params": whole, "weight_decay": ADAM.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=ADAM.lr, betas=ADAM.betas, eps=ADAM.eps, fused=True)


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
def apart(ours: Ours, theirs: Theirs, loaded: DeviceBatch, batch: Mapping[str, Tensor]) -> float:
    """How far the losses of both lie from each other on the same masked rows, with nothing dropped out."""
    learner = ours.worker.model
    learner.eval()
    theirs.model.eval()
    (term,) = learner(loaded.batches[0], LEARNS)
    difference = term.total / term.count - theirs.model(**batch).loss
    learner.train()
    theirs.model.train()
    return abs(float(difference))

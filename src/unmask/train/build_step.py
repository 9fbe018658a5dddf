"""Builds the step runner for a device: compilation or Triton kernels, CUDA graphs, distributed data parallel.

Weights are initialized, imported or resumed before or after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch.nn.parallel import DistributedDataParallel

from unmask.config.optim import OptimConfig
from unmask.core.errors import UserError
from unmask.nets.kernels.dispatch import use_kernels
from unmask.train.batches.recipe_batches import BatchSource
from unmask.train.gpu_async import CudaGraphCache, SideStream
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.optim.build import build_optimizer, lr_on_device, set_found_inf, supports_found_inf
from unmask.train.optim.param_groups import group_parameters
from unmask.train.optim.param_lr import ParamLRFn, delayed_parameters, freeze_parameters, full_lr
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.schedule import Budget
from unmask.train.segment_memory import SegmentMemory
from unmask.train.step import StepRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    """Everything that decides what is learned."""

    model: MultiHeadModel
    """With its first weights; a resume replaces them."""
    source: BatchSource
    optim: OptimConfig
    budget: Budget
    seed: int
    param_lr: ParamLRFn = full_lr
    """How fast each parameter moves, and from when on."""


def build_step_runner(
    model: MultiHeadModel,
    optim: OptimConfig,
    heads_vary: bool,
    seed: int,
    run: RunConfig,
    dist: DistContext,
    param_lr: ParamLRFn = full_lr,
) -> StepRunner:
    """Move the learner to the device, compile its blocks or take kernels as is wished for, share it among processes.

    `mixed`: whether lessons differ in what they ask, so that processes must not wait for the heads that rest.
    """
    model.to(run.device).train()
    freeze_parameters(model, param_lr)
    waiting = delayed_parameters(model, param_lr)
    groups = group_parameters(model, model.blocks(), lambda name: param_lr(name).scale)
    optimizer = build_optimizer(optim.optimizer, groups)
    use_kernels(model, run.uses_kernels)
    model.set_sparse_last_block(run.uses_sparse_last_block)
    if run.compile:
        model.compile_blocks()
    module: MultiHeadModel | DistributedDataParallel = model
    if dist.world_size > 1 and model.network.memory_length:
        raise UserError(
            f"A network with memory trains in one process, because a checkpoint holds the memory of one; found "
            f"{dist.world_size} processes. Start one."
        )
    if dist.world_size > 1:
        devices = [run.device] if run.device.type == "cuda" else None
        module = DistributedDataParallel(model, device_ids=devices, find_unused_parameters=heads_vary or bool(waiting))
    broken, queue = torch.zeros((), device=run.device), run.max_in_flight if supports_found_inf(optimizer) else 0
    if queue:
        set_found_inf(optimizer, broken)
    run = replace(run, cuda_graphs=run.cuda_graphs and bool(queue) and not waiting and dist.world_size == 1)
    worker = StepRunner(
        model,
        module,
        optimizer,
        run,
        dist,
        optim.max_grad_norm,
        seed,
        queue,
        broken,
        waiting,
        memory=SegmentMemory(model.network) if model.network.memory_length else None,
    )
    # In bfloat16 with kernels of our own: that is what tests hold to a run without it.
    beside = run.generator_stream and run.cuda_graphs and run.casts_weights_once and run.device.type == "cuda"
    model.generator_stream = SideStream.on(run.device) if beside and len(list(model.networks())) > 1 else SideStream()
    if run.cuda_graphs:
        lr_on_device(optimizer)
        return replace(worker, graph_cache=CudaGraphCache(worker.run_kernels, run.device))
    return worker

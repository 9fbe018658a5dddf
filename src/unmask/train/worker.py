"""What a step is done with, made for the machine that is there.

What arrives: a learner with weights, how to descend, and a run. What leaves: a `Worker`.
What never happens here: weights. They are drawn, imported or read before or after.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.nn.parallel import DistributedDataParallel

from unmask.nets.fused import use_kernels
from unmask.optimising import Descent
from unmask.train.aside import Aside
from unmask.train.learner import Learner
from unmask.train.optim import build, can_skip, rates_on_device, skip_when
from unmask.train.optim_groups import group_parameters
from unmask.train.pace import Paces, freeze, full_pace, late
from unmask.train.processes import Processes
from unmask.train.repeats import Repeats
from unmask.train.run import Run
from unmask.train.step import Worker


def make_worker(
    learner: Learner,
    descent: Descent,
    mixed: bool,
    seed: int,
    run: Run,
    processes: Processes,
    paces: Paces = full_pace,
) -> Worker:
    """Move the learner to the device, compile its blocks or take kernels as is wished for, share it among processes.

    `mixed`: whether lessons differ in what they ask, so that processes must not wait for the heads that rest.
    """
    learner.to(run.device).train()
    freeze(learner, paces)
    waiting = late(learner, paces)
    groups = group_parameters(learner, learner.blocks(), lambda name: paces(name).scale)
    optimizer = build(descent.optimiser, groups)
    use_kernels(learner, run.kernels)
    learner.spare(run.spares)
    if run.compile:
        learner.compile_blocks()
    module: Learner | DistributedDataParallel = learner
    if processes.world > 1:
        devices = [run.device] if run.device.type == "cuda" else None
        module = DistributedDataParallel(learner, device_ids=devices, find_unused_parameters=mixed or bool(waiting))
    broken, queue = torch.zeros((), device=run.device), run.queue if can_skip(optimizer) else 0
    if queue:
        skip_when(optimizer, broken)
    run = replace(run, graphs=run.graphs and bool(queue) and not waiting and processes.world == 1)
    worker = Worker(learner, module, optimizer, run, processes, descent.clip, seed, queue, broken, waiting)
    # In bfloat16 with kernels of our own: that is what tests hold to a run without it.
    beside = run.aside and run.graphs and run.halves and run.device.type == "cuda"
    learner.aside = Aside.on(run.device) if beside and len(list(learner.networks())) > 1 else Aside()
    if run.graphs:
        rates_on_device(optimizer)
        return replace(worker, repeats=Repeats(worker.whole, run.device))
    return worker

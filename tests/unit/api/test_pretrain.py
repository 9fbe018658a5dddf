"""How a run is computed where it is: how much at once, by network, precision, recorded steps and how many runs share a
device; and who makes its lessons.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from unmask.api import pretrain
from unmask.api.pretrain import RunOptions, microbatch_for
from unmask.members import member
from unmask.objectives.generator import all_networks
from unmask.train.run_config import Precision, RunConfig

RUN = RunConfig(device=torch.device("cuda"), precision=Precision.BFLOAT16, triton_kernels=True)


@pytest.fixture(autouse=True)
def _card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=24 * 10**9))


def test_what_holds_more_is_computed_in_smaller_parts():
    base = member("bert", "base")
    usual = microbatch_for(base, RUN)
    assert 0.35 < usual * base.network.activation_bytes(fused=True) / 24e9 < 0.7
    assert microbatch_for(base, replace(RUN, precision=Precision.FLOAT32)) == usual // 2
    assert microbatch_for(base, replace(RUN, cuda_graphs=True, max_in_flight=2)) == usual // 2
    assert microbatch_for(base, RUN, num_sharing=4) == usual // 4
    assert microbatch_for(base, replace(RUN, triton_kernels=False)) < usual
    assert microbatch_for(base, replace(RUN, compile=True)) < usual
    assert microbatch_for(member("bert", "large"), RUN) < usual


def test_a_generator_counts():
    recipe = member("electra", "base")
    both = all_networks(recipe.network, recipe.objectives)
    assert len(both) == 2
    assert microbatch_for(recipe, RUN) * sum(one.activation_bytes(fused=True) for one in both) <= 0.7 * 24e9


def test_a_cpu_asks_nobody():
    assert microbatch_for(member("bert", "base"), RunConfig(device=torch.device("cpu")), num_sharing=16) == 4096


@pytest.mark.parametrize(
    ("device", "graphs", "world", "process"),
    [
        ("cuda", True, "1", True),
        ("cuda", False, "1", False),
        ("cuda", True, "2", False),
        ("cpu", True, "1", False),
    ],
)
def test_a_process_makes_lessons_where_steps_are_recorded_on_a_gpu(monkeypatch, device, graphs, world, process):
    monkeypatch.setenv("WORLD_SIZE", world)
    found = replace(RUN, device=torch.device(device), cuda_graphs=graphs, max_in_flight=2)
    monkeypatch.setattr(pretrain, "default_run_config", lambda *_: found)
    wish = RunOptions(
        out=Path("runs"),
        num_evals=3,
        keep_checkpoints=1,
        save_every_minutes=5.0,
    )
    made = wish.for_this_machine(member("bert", "tiny"))
    assert made.batch_worker_process is process
    assert made.cuda_graphs is (graphs and world == "1")
    assert (made.num_evals, made.keep_checkpoints, made.save_every_minutes) == (3, 1, 5.0)

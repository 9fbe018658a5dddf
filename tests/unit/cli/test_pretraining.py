"""How a run is computed where it is: how much at once, by network, precision, recorded steps and how many runs share a
device; and who makes its lessons.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from unmask.cli import pretraining
from unmask.cli.pretraining import Logistics, suited_micro
from unmask.family import member
from unmask.nets.held import held_bytes
from unmask.objectives.guess import networks_of
from unmask.train.run import Precision, Run

RUN = Run(device=torch.device("cuda"), precision=Precision.BFLOAT16, fused=True)


@pytest.fixture(autouse=True)
def _card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=24 * 10**9))


def test_what_holds_more_is_computed_in_smaller_parts():
    base = member("bert", "base")
    usual = suited_micro(base, RUN)
    assert 0.35 < usual * held_bytes(base.trunk, fused=True) / 24e9 < 0.7
    assert suited_micro(base, replace(RUN, precision=Precision.FLOAT32)) == usual // 2
    assert suited_micro(base, replace(RUN, graphs=True, queue=2)) == usual // 2
    assert suited_micro(base, RUN, sharing=4) == usual // 4
    assert suited_micro(base, replace(RUN, fused=False)) < usual
    assert suited_micro(base, replace(RUN, compile=True)) < usual
    assert suited_micro(member("bert", "large"), RUN) < usual


def test_a_generator_counts():
    recipe = member("electra", "base")
    both = networks_of(recipe.trunk, recipe.objectives)
    assert len(both) == 2
    assert suited_micro(recipe, RUN) * sum(held_bytes(one, fused=True) for one in both) <= 0.7 * 24e9


def test_a_cpu_asks_nobody():
    assert suited_micro(member("bert", "base"), Run(device=torch.device("cpu")), sharing=16) == 4096


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
    found = replace(RUN, device=torch.device(device), graphs=graphs, queue=2)
    monkeypatch.setattr(pretraining, "run_here", lambda *_: found)
    wish = Logistics(
        out=Path("runs"),
        device="auto",
        precision="auto",
        micro=0,
        compile=False,
        graphs="auto",
        plain=False,
        trials=3,
        keep=1,
        save_minutes=5.0,
        tensorboard=False,
        dry_run=False,
    )
    made = wish.here(member("bert", "tiny"))
    assert made.loader_process is process
    assert made.graphs is (graphs and world == "1")
    assert (made.trials, made.keep, made.save_minutes) == (3, 1, 5.0)

"""The logistics of a run: the device, the precision, and what may be asked for."""

from types import SimpleNamespace

import pytest
import torch

from unmask.core.errors import UserError
from unmask.train.run_config import (
    Precision,
    RunConfig,
    default_run_config,
    pick_device,
    pick_microbatch,
    pick_precision,
    pick_queue,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize("wish", ["gpu", "cuda:99", "meta", "", "cpu:x"])
def test_a_device_that_cannot_be_used_is_one_sentence(wish):
    with pytest.raises(UserError, match=r"cannot be used here: .* Take --device cpu, or auto\.$"):
        pick_device(wish)


def test_what_is_left_open_fits_the_machine(monkeypatch):
    assert pick_device("cpu") == CPU
    assert pick_device("auto").type in ("cpu", "cuda", "mps")
    assert pick_precision(CPU) is Precision.FLOAT32
    assert pick_precision(CPU, "bfloat16") is Precision.BFLOAT16
    assert pick_microbatch(CPU) == 4096
    assert pick_microbatch(CPU, bytes_per_token=1000) == 4096
    assert pick_queue(CPU) == 0
    assert pick_queue(torch.device("cuda")) > 0
    assert default_run_config("cpu") == RunConfig(device=CPU)
    assert default_run_config("cpu", cuda_graphs="on") == RunConfig(device=CPU, cuda_graphs=True, max_in_flight=1)


@pytest.mark.parametrize(
    ("gigabytes", "held", "tokens"),
    [(140, 294_912, 131_072), (80, 2 * 786_432, 32_768), (12, 2 * 294_912, 8192), (1, 1 << 40, 4096)],
)
def test_a_gpu_computes_as_many_tokens_at_once_as_it_can_hold(monkeypatch, gigabytes, held, tokens):
    about = SimpleNamespace(total_memory=gigabytes * 10**9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: about)
    assert pick_microbatch(torch.device("cuda"), held) == tokens
    assert pick_microbatch(torch.device("cuda")) == 16_384


@pytest.mark.parametrize(
    "wrong",
    [
        {"microbatch_tokens": 0},
        {"keep_checkpoints": 0},
        {"num_evals": 0},
        {"save_every_minutes": -1.0},
        {"max_in_flight": -1},
    ],
)
def test_a_run_that_cannot_work_is_refused(wrong):
    with pytest.raises(UserError, match="A run needs"):
        RunConfig(device=CPU, **wrong)


def test_half_precision_is_for_products_and_not_for_weights():
    layer = torch.nn.Linear(3, 3)
    with RunConfig(device=CPU, precision=Precision.BFLOAT16).autocast():
        assert layer(torch.ones(1, 3)).dtype is torch.bfloat16
    with RunConfig(device=CPU).autocast():
        assert layer(torch.ones(1, 3)).dtype is torch.float32
    assert layer.weight.dtype is torch.float32

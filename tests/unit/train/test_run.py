"""The logistics of a run: the device, the precision, and what may be asked for."""

from types import SimpleNamespace

import pytest
import torch

from unmask.errors import UserError
from unmask.train.run import (
    Precision,
    Run,
    choose_device,
    choose_micro,
    choose_precision,
    choose_queue,
    run_here,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize("wish", ["gpu", "cuda:99", "meta", "", "cpu:x"])
def test_a_device_that_cannot_be_used_is_one_sentence(wish):
    with pytest.raises(UserError, match=r"cannot be used here: .* Take --device cpu, or auto\.$"):
        choose_device(wish)


def test_what_is_left_open_fits_the_machine(monkeypatch):
    assert choose_device("cpu") == CPU
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    assert choose_precision(CPU) is Precision.FLOAT32
    assert choose_precision(CPU, "bfloat16") is Precision.BFLOAT16
    assert choose_micro(CPU) == 4096
    assert choose_micro(CPU, held=1000) == 4096
    assert choose_queue(CPU) == 0
    assert choose_queue(torch.device("cuda")) > 0
    assert run_here("cpu") == Run(device=CPU)
    assert run_here("cpu", graphs="on") == Run(device=CPU, graphs=True, queue=1)


@pytest.mark.parametrize(
    ("gigabytes", "held", "tokens"),
    [(140, 294_912, 131_072), (80, 2 * 786_432, 32_768), (12, 2 * 294_912, 8192), (1, 1 << 40, 4096)],
)
def test_a_gpu_computes_as_many_tokens_at_once_as_it_can_hold(monkeypatch, gigabytes, held, tokens):
    about = SimpleNamespace(total_memory=gigabytes * 10**9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: about)
    assert choose_micro(torch.device("cuda"), held) == tokens
    assert choose_micro(torch.device("cuda")) == 16_384


@pytest.mark.parametrize("wrong", [{"micro": 0}, {"keep": 0}, {"trials": 0}, {"save_minutes": -1.0}, {"queue": -1}])
def test_a_run_that_cannot_work_is_refused(wrong):
    with pytest.raises(UserError, match="A run needs"):
        Run(device=CPU, **wrong)


def test_half_precision_is_for_products_and_not_for_weights():
    layer = torch.nn.Linear(3, 3)
    with Run(device=CPU, precision=Precision.BFLOAT16).autocast():
        assert layer(torch.ones(1, 3)).dtype is torch.bfloat16
    with Run(device=CPU).autocast():
        assert layer(torch.ones(1, 3)).dtype is torch.float32
    assert layer.weight.dtype is torch.float32

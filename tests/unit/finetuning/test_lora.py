"""LoRA through peft: only updates and head are trained, merged weights say the same, and nobody else loads peft."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from little_policy import DEEP, equipped, tuned, tuning
from torch import nn

import unmask.finetuning.methods.lora
from unmask.config.network import Sharing
from unmask.core.errors import RecipeError, UserError
from unmask.finetuning.methods.lora import Lora, merge_updates
from unmask.finetuning.methods.protocol import FullFineTuning, count_trained, param_lrs
from unmask.finetuning.parameter_roles import ParameterRole, locate_parameters
from unmask.nets.batch.batch import collate

LINEAR = 4  # in each block: queries with keys and values, out, up, down


def test_every_linear_layer_of_the_blocks_has_an_update_and_nothing_else_moves():
    learner = equipped(Lora(rank=2))
    added = [name for name, place in locate_parameters(learner).items() if place.role is ParameterRole.ADDED]
    assert len(added) == 2 * LINEAR * DEEP.depth
    assert all("lora" in name for name in added)
    paces = param_lrs(Lora(rank=2), learner)
    assert {name for name in learner.named_weights() if paces(name).is_trained} == {
        *added,
        *(name for name in learner.named_weights() if name.startswith("heads.")),
    }
    sizes = [(16, 48), (16, 16), (16, 32), (32, 16)]
    head = count_trained(equipped(FullFineTuning()), FullFineTuning()).num_total - sum(
        p.numel() for p in equipped(FullFineTuning()).network.parameters()
    )
    assert count_trained(learner, Lora(rank=2)).num_trained == head + DEEP.depth * sum(2 * (a + b) for a, b in sizes)


def test_updates_are_zero_at_first_and_the_same_for_the_same_seed():
    plain, wrapped, same = equipped(FullFineTuning()).eval(), equipped(Lora()).eval(), equipped(Lora())
    other = equipped(FullFineTuning())
    Lora().add_modules(other, 1)
    batch = collate(some_rows())
    with torch.no_grad():
        assert torch.equal(plain.network(batch.tokens).last_TD, wrapped.network(batch.tokens).last_TD)
    weights = [learner.named_weights() for learner in (wrapped, same, other)]
    drawn = [name for name in weights[0] if "lora_A" in name]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in drawn)
    assert not any(torch.equal(weights[0][name], weights[2][name]) for name in drawn)


def test_drawing_leaves_the_draws_of_others_alone():
    learner = equipped(FullFineTuning())
    before = torch.get_rng_state()
    Lora().add_modules(learner, 0)
    assert torch.equal(torch.get_rng_state(), before)


def some_rows():
    from unmask.core.records import Inputs, InputsAndTargets

    ids = np.arange(10, 20, dtype=np.int32)
    zeros = np.zeros(10, dtype=np.int32)
    return InputsAndTargets(Inputs(ids, zeros.astype(np.uint8), zeros, np.arange(10) % 5, np.array([0, 5, 10])), ())


@pytest.mark.parametrize("sharing", [Sharing.NONE, Sharing.ALL])
def test_merged_weights_say_the_same_in_the_plain_shape(tmp_path, sharing):
    trunk = replace(DEEP, sharing=sharing)
    made = tuning(tmp_path, Lora(rank=2), trunk=trunk)
    learner = tuned(made, tmp_path / "run").learner
    batch = collate(some_rows())
    with torch.no_grad():
        before = learner.network(batch.tokens).last_TD
        still = equipped(FullFineTuning(), trunk).eval().network(batch.tokens).last_TD
        merge_updates(learner)
        after = learner.network(batch.tokens).last_TD
    assert not torch.allclose(before, still, atol=1e-2)
    assert torch.allclose(before, after, atol=1e-5)
    assert learner.named_weights().keys() == equipped(FullFineTuning(), trunk).named_weights().keys()
    assert all(type(part) is nn.Linear for part in learner.network.modules() if isinstance(part, nn.Linear))


def test_without_peft_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(unmask.finetuning.methods.lora, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs the library peft.*pip install 'unmask\[lora\]'"):
        tuning(tmp_path, Lora())


def test_numbers_that_cannot_work_are_refused():
    for wrong in ({"rank": 0}, {"alpha": 0}, {"dropout": 1.0}):
        with pytest.raises(RecipeError, match="a rank of at least 1"):
            Lora(**wrong)


def test_peft_is_loaded_only_by_those_who_use_it():
    script = """
import sys
from unmask.finetuning.methods.by_name import method_by_name
method_by_name("lora", {"rank": 4})
print("torch" in sys.modules, "peft" in sys.modules)
import unmask.finetuning.finetune
print("peft" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False"]

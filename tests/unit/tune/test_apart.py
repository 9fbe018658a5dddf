"""What is saved apart from its trunk: it comes back bit for bit on that trunk, and is refused on any other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from little_policy import APART, DEEP, EVERY, SETTINGS, named, tuned, tuning
from little_task import little_model
from safetensors.torch import load_file

from unmask.errors import InputError
from unmask.nets.transformer import draw_weights
from unmask.tune.policies.adapter import Adapter
from unmask.tune.policies.frozen import Frozen
from unmask.tune.policies.layers import Layers
from unmask.tune.policy import Full, paces_of
from unmask.tune.saved import MODEL, Root, load_tuned, save_tuned
from unmask.tune.start import Origin


@pytest.mark.parametrize("policy", EVERY, ids=named)
def test_every_policy_comes_back_bit_for_bit(tmp_path, policy):
    made = tuning(tmp_path, policy)
    done = tuned(made, tmp_path / "run")
    save_tuned(done, tmp_path / "run", Root("little", "somewhere"), {})
    asked: list[Root] = []

    def find(root: Root):
        asked.append(root)
        return made.model

    back = load_tuned(tmp_path / "run", find)
    assert back.policy == policy
    for name, tensor in done.learner.weights().items():
        assert torch.equal(tensor, back.learner.weights()[name]), name
    assert back.answer(made.job.judged) == done.answer(made.job.judged)
    assert asked == ([Root("little", "somewhere")] if policy.apart else [])
    paces, saved = paces_of(policy, done.learner), set(load_file(tmp_path / "run" / MODEL))
    assert saved == {name for name in done.learner.weights() if not policy.apart or paces(name).moves}


@pytest.mark.parametrize("policy", APART, ids=named)
def test_another_trunk_is_refused(tmp_path, policy):
    made = tuning(tmp_path, policy)
    save_tuned(tuned(made, tmp_path / "run"), tmp_path / "run", Root("little"), {})
    other = little_model(trunk=DEEP)
    draw_weights(other, 0.1, torch.Generator().manual_seed(5))
    for wrong in (other, little_model(trunk=replace(DEEP, depth=2)), little_model(trunk=replace(DEEP, inner=8))):
        with pytest.raises(InputError, match="that was another network than this one: the weights differ"):
            load_tuned(tmp_path / "run", lambda root, wrong=wrong: wrong)


def test_one_changed_number_in_the_trunk_is_enough(tmp_path):
    made = tuning(tmp_path, Adapter(4))
    save_tuned(tuned(made, tmp_path / "run"), tmp_path / "run", Root("little"), {})
    with torch.no_grad():
        made.model.trunk.embed.token.weight[7, 3] += 1e-6
    with pytest.raises(InputError, match="Name the one that it was tuned from with --network"):
        load_tuned(tmp_path / "run", lambda root: made.model)


def test_a_drawn_trunk_is_saved_because_it_lies_nowhere_else(tmp_path):
    made = tuning(tmp_path, Frozen(), replace(SETTINGS, start=Origin.SCRATCH))
    done = tuned(made, tmp_path / "run")
    save_tuned(done, tmp_path / "run", Root("little"), {})

    def find(root: Root):
        raise AssertionError("nobody is asked")

    back = load_tuned(tmp_path / "run", find)
    assert back.answer(made.job.judged) == done.answer(made.job.judged)
    assert back.drawn


def test_an_adapter_folder_is_much_smaller_than_a_full_one(tmp_path):
    sizes = {}
    for policy in (Full(), Adapter(2), Frozen(), Layers()):
        folder = tmp_path / policy.name
        save_tuned(tuned(tuning(tmp_path, policy), folder), folder, Root("little"), {})
        sizes[policy.name] = (folder / MODEL).stat().st_size
    assert sizes["frozen"] < sizes["layers"] < sizes["adapter"] < sizes["full"] / 3

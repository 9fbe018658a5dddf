"""What is saved apart from its trunk: it comes back bit for bit on that trunk, and is refused on any other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from little_policy import APART, DEEP, EVERY, SETTINGS, named, tuned, tuning
from little_task import little_model
from safetensors.torch import load_file

from unmask.core.errors import InputError
from unmask.finetuning.artifact import BaseModelRef, load_finetuned, save_finetuned
from unmask.finetuning.init_weights import StartFrom
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.frozen import FrozenEncoder, ScalarMixing
from unmask.finetuning.methods.protocol import FullFineTuning, param_lrs
from unmask.loading.encoder_folder import MODEL_FILE
from unmask.nets.encoder import init_weights


@pytest.mark.parametrize("policy", EVERY, ids=named)
def test_every_policy_comes_back_bit_for_bit(tmp_path, policy):
    made = tuning(tmp_path, policy)
    done = tuned(made, tmp_path / "run")
    save_finetuned(done, tmp_path / "run", BaseModelRef("little", "somewhere"), {})
    asked: list[BaseModelRef] = []

    def find(root: BaseModelRef):
        asked.append(root)
        return made.model

    back = load_finetuned(tmp_path / "run", find)
    assert back.method == policy
    for name, tensor in done.learner.named_weights().items():
        assert torch.equal(tensor, back.learner.named_weights()[name]), name
    assert back.predict(made.data.dev) == done.predict(made.data.dev)
    assert asked == ([BaseModelRef("little", "somewhere")] if policy.saves_delta_only else [])
    paces, saved = param_lrs(policy, done.learner), set(load_file(tmp_path / "run" / MODEL_FILE))
    assert saved == {
        name for name in done.learner.named_weights() if not policy.saves_delta_only or paces(name).is_trained
    }


@pytest.mark.parametrize("policy", APART, ids=named)
def test_another_trunk_is_refused(tmp_path, policy):
    made = tuning(tmp_path, policy)
    save_finetuned(tuned(made, tmp_path / "run"), tmp_path / "run", BaseModelRef("little"), {})
    other = little_model(trunk=DEEP)
    init_weights(other, 0.1, torch.Generator().manual_seed(5))
    for wrong in (other, little_model(trunk=replace(DEEP, depth=2)), little_model(trunk=replace(DEEP, ffn_width=8))):
        with pytest.raises(InputError, match="this is another model: the weights differ"):
            load_finetuned(tmp_path / "run", lambda root, wrong=wrong: wrong)


def test_one_changed_number_in_the_trunk_is_enough(tmp_path):
    made = tuning(tmp_path, Adapter(4))
    save_finetuned(tuned(made, tmp_path / "run"), tmp_path / "run", BaseModelRef("little"), {})
    with torch.no_grad():
        made.model.network.embed.token.weight[7, 3] += 1e-6
    with pytest.raises(InputError, match="Name the model that it was fine-tuned from with --base-model"):
        load_finetuned(tmp_path / "run", lambda root: made.model)


def test_a_drawn_trunk_is_saved_because_it_lies_nowhere_else(tmp_path):
    made = tuning(tmp_path, FrozenEncoder(), replace(SETTINGS, start=StartFrom.SCRATCH))
    done = tuned(made, tmp_path / "run")
    save_finetuned(done, tmp_path / "run", BaseModelRef("little"), {})

    def find(root: BaseModelRef):
        raise AssertionError("nobody is asked")

    back = load_finetuned(tmp_path / "run", find)
    assert back.predict(made.data.dev) == done.predict(made.data.dev)
    assert back.from_scratch


def test_an_adapter_folder_is_much_smaller_than_a_full_one(tmp_path):
    sizes = {}
    for policy in (FullFineTuning(), Adapter(2), FrozenEncoder(), ScalarMixing()):
        folder = tmp_path / policy.name
        save_finetuned(tuned(tuning(tmp_path, policy), folder), folder, BaseModelRef("little"), {})
        sizes[policy.name] = (folder / MODEL_FILE).stat().st_size
    assert sizes["frozen"] < sizes["layers"] < sizes["adapter"] < sizes["full"] / 3

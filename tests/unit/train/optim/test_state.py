"""The state of an optimizer as named tensors: a resumed run goes on bit for bit, another network is refused."""

import copy

import pytest
import torch
from little_net import EVERY, MUON, gradients, groups_of, little, run

from unmask.config.optim import AdamW
from unmask.core.errors import InputError
from unmask.train.optim.build import build_optimizer
from unmask.train.optim.state import load_state_tensors, state_tensors


@pytest.mark.parametrize("spec", EVERY, ids=repr)
@pytest.mark.parametrize("after", [0, 3])
def test_saved_state_goes_on_bit_for_bit(spec, after):
    straight = little(torch.float32)
    steps = gradients(straight)
    optimizer = build_optimizer(spec, groups_of(straight))
    run(straight, optimizer, steps[:after])
    resumed = copy.deepcopy(straight)
    saved = {key: tensor.clone() for key, tensor in state_tensors(optimizer, dict(straight.named_parameters())).items()}
    run(straight, optimizer, steps[after:], after)

    again = build_optimizer(spec, groups_of(resumed))
    load_state_tensors(again, dict(resumed.named_parameters()), saved)
    run(resumed, again, steps[after:], after)
    for one, other in zip(straight.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)
    names = dict(straight.named_parameters())
    last, last_again = state_tensors(optimizer, names), state_tensors(again, dict(resumed.named_parameters()))
    assert last.keys() == last_again.keys()
    assert all(torch.equal(last[key], last_again[key]) for key in last)


def test_torch_s_own_state_dict_works_for_two_optimizers_in_one():
    straight = little(torch.float32)
    steps = gradients(straight)
    optimizer = build_optimizer(MUON, groups_of(straight))
    run(straight, optimizer, steps[:3])
    resumed = copy.deepcopy(straight)
    again = build_optimizer(MUON, groups_of(resumed))
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    run(straight, optimizer, steps[3:], 3)
    run(resumed, again, steps[3:], 3)
    assert all(torch.equal(one, other) for one, other in zip(straight.parameters(), resumed.parameters(), strict=True))


@pytest.mark.parametrize("spoil", ["missing", "left over", "shape", "dtype"])
def test_state_of_something_else_is_refused(spoil):
    net = little()
    names = dict(net.named_parameters())
    optimizer = build_optimizer(AdamW(1e-2), groups_of(net))
    saved = {key: tensor.clone() for key, tensor in state_tensors(optimizer, names).items()}
    key = "exp_avg/token.weight"
    if spoil == "missing":
        del saved[key]
    elif spoil == "left over":
        key = "exp_avg/other.weight"
        saved[key] = torch.zeros(2)
    else:
        saved[key] = saved[key][:3] if spoil == "shape" else saved[key].float()
    with pytest.raises(InputError, match=key):
        load_state_tensors(optimizer, names, saved)

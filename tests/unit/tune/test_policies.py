"""What every policy is held to: one pace for each parameter; what rests stays, what moves changes; a stop is fine."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from little_policy import DEEP, EVERY, SETTINGS, Stop, equipped, named, stop_at, tuned, tuning

from unmask.codec import decode, encode
from unmask.errors import InputError, RecipeError
from unmask.nets.trunk import Norm, Sharing
from unmask.objectives.mlm import MLM
from unmask.objectives.writing import Write, WriteAfter
from unmask.optimising import AdamW, Descent, Linear
from unmask.train.checkpoint import CHECKPOINTS, MODEL, checkpoints, read_tensors
from unmask.train.pace import Pace, Paces
from unmask.train.processes import Processes
from unmask.train.run import Run
from unmask.train.worker import make_worker
from unmask.tune.judge import Judge, Pick, Rate, Tick
from unmask.tune.outputs.pair import Compare
from unmask.tune.places import Part, Place, places, top_of
from unmask.tune.pointing import Point
from unmask.tune.policies.adapter import Adapter
from unmask.tune.policies.choose import POLICIES, choose_policy
from unmask.tune.policies.frozen import Frozen
from unmask.tune.policies.gradual import Gradual
from unmask.tune.policies.layers import Layers
from unmask.tune.policies.norms import Norms
from unmask.tune.policies.top import Top
from unmask.tune.policy import Full, Policy, paces_of, trained
from unmask.tune.start import Origin

HEADS = (Judge(3), Rate(), Tick(4), Pick(), Point(), Compare(3), MLM(), Write(positions=8), WriteAfter())
every = pytest.mark.parametrize("policy", EVERY, ids=named)


def copies(learner: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in learner.named_parameters()}


@every
@settings(deadline=None, max_examples=20)  # the first one loads what a policy needs
@given(
    depth=st.integers(1, 4),
    norm=st.sampled_from(Norm),
    sharing=st.sampled_from(Sharing),
    embedding=st.sampled_from([0, 8]),
)
def test_every_parameter_has_one_place_and_one_pace(policy, depth, norm, sharing, embedding):
    trunk = replace(DEEP, depth=max(depth, getattr(policy, "blocks", 1)), norm=norm, sharing=sharing)
    learner = equipped(policy, replace(trunk, embedding=embedding), HEADS)
    where, paces = places(learner), paces_of(policy, learner)
    assert where.keys() == dict(learner.named_parameters()).keys()
    assert all(isinstance(paces(name), Pace) for name in where)
    assert all(0 <= place.level <= top_of(learner) for place in where.values())
    assert all((place.level == top_of(learner)) == place.above for place in where.values())
    assert all(place.above for name, place in where.items() if name.startswith(("heads.", "mix.")))
    assert not any(place.above for name, place in where.items() if name.startswith("trunk."))


@every
def test_what_rests_stays_bit_for_bit_and_what_moves_changes(tmp_path, policy):
    made = tuning(tmp_path, policy)
    first = copies(equipped(policy))
    learner = tuned(made, tmp_path / "run").learner
    paces = paces_of(policy, learner)
    assert first.keys() == dict(learner.named_parameters()).keys()
    for name, tensor in learner.weights().items():
        assert torch.equal(tensor, first[name]) is not paces(name).moves, name
    assert trained(learner, policy).moving == sum(t.numel() for n, t in learner.weights().items() if paces(n).moves)


@every
@pytest.mark.parametrize("beside", [0.0, 0.5])
def test_a_stopped_run_ends_with_the_same_weights(tmp_path, policy, beside):
    if beside and isinstance(policy, Frozen | Layers) and not getattr(policy, "move", False):
        pytest.skip("a trunk at rest has no language model beside it")
    made = tuning(tmp_path, policy, replace(SETTINGS, beside=beside))
    with pytest.raises(Stop):
        tuned(made, tmp_path / "stopped", (stop_at(5),))
    (kept,) = checkpoints(tmp_path / "stopped" / CHECKPOINTS)
    again, whole = tuned(made, tmp_path / "stopped").learner, tuned(made, tmp_path / "whole").learner
    for name, tensor in whole.weights().items():
        assert torch.equal(tensor, again.weights()[name]), name
    paces = paces_of(policy, whole)
    moving = {name for name in whole.weights() if paces(name).moves}
    written = {name for name in kept_names(tmp_path / "whole") if not name.startswith("heads.mlm")}
    assert kept.name == "step-000000003"
    assert written == moving, "a checkpoint holds what moves and nothing else"


def kept_names(folder: Path) -> set[str]:
    (last,) = checkpoints(folder / CHECKPOINTS)
    return set(read_tensors(last, MODEL))


def test_policies_are_values_that_survive_json():
    for policy in EVERY:
        assert decode(encode(policy), Policy) == policy


def levels(paces: Paces, learner) -> dict[int, set[Pace]]:
    found: dict[int, set[Pace]] = {}
    for name, place in places(learner).items():
        found.setdefault(place.level, set()).add(paces(name))
    return found


def test_layer_wise_decay_has_the_same_ratio_everywhere():
    policy = Full(decay=0.5)
    learner = equipped(policy)
    paces = paces_of(policy, learner)
    assert levels(paces, learner) == {level: {Pace(0.5 ** (4 - level))} for level in range(5)}
    run, alone = Run(device=torch.device("cpu")), Processes(0, 1, torch.device("cpu"))
    worker = make_worker(learner, Descent(AdamW(0.25), Linear()), False, 0, run, alone, paces)
    peaks = {id(p): group["peak"] for group in worker.optimizer.param_groups for p in group["params"]}
    for name, parameter in learner.named_parameters():
        assert peaks[id(parameter)] == 0.25 * 0.5 ** (4 - places(learner)[name].level)


def test_gradual_unfreezing_goes_from_the_top_down_in_equal_steps():
    policy = Gradual()
    learner = equipped(policy)
    found = levels(paces_of(policy, learner), learner)
    assert [since.since for level in (4, 3, 2, 1, 0) for since in found[level]] == [0, 0.125, 0.25, 0.375, 0.5]
    scales = [pace.scale for level in (4, 3, 2, 1, 0) for pace in found[level]]
    assert [a / b for a, b in pairwise(scales)] == pytest.approx([2.6] * 4)
    assert scales[0] == 1


def test_shared_blocks_stand_where_the_highest_of_them_stands():
    learner = equipped(Top(), replace(DEEP, sharing=Sharing.ALL))
    blocks = {place.level for place in places(learner).values() if place.part is Part.BLOCK}
    assert blocks == {3}
    assert all(paces_of(Top(), learner)(name).moves for name in learner.weights() if ".layers." in name)


def test_what_is_trained_grows_with_the_policy():
    def count(policy: Policy) -> int:
        return trained(equipped(policy), policy).moving

    head = 16 * 16 + 16 + 16 * 2 + 2
    assert count(Frozen()) == head
    assert count(Layers()) == head + 4 + 1
    assert count(Norms()) == head + 2 * 16 * 7
    assert count(Adapter(4)) == count(Norms()) + 3 * 2 * (2 * 4 * 16 + 16 + 4)
    assert count(Frozen()) < count(Top(1)) < count(Top(2)) < count(Top(3)) < count(Full())
    assert trained(equipped(Full()), Full()).share == 1
    assert count(Gradual()) == count(Full())


def test_a_policy_is_chosen_by_name_and_only_with_its_own_options():
    assert {type(choose_policy(policy.name, {})) for policy in POLICIES} == set(POLICIES)
    assert choose_policy("adapter", {"width": 8}) == Adapter(8)
    assert choose_policy("full", {"decay": 0.9}) == Full(0.9)
    assert choose_policy("top", {"blocks": 2}) == Top(2)
    assert choose_policy("frozen", {"cache": False}) == Frozen(cache=False)
    with pytest.raises(InputError, match="--width says nothing to --policy frozen; it is for adapter"):
        choose_policy("frozen", {"width": 8})
    with pytest.raises(InputError, match="it is for full and gradual"):
        choose_policy("norms", {"decay": 0.9})
    with pytest.raises(InputError, match=r"There is no policy 'adaptor'\. Choose one of: full, frozen, layers"):
        choose_policy("adaptor", {})


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: Full(decay=0), "found 0"),
        (lambda: Full(decay=1.5), "found 1.5"),
        (lambda: Adapter(0), "a width of at least 1"),
        (lambda: Top(0), "At least 1 block"),
        (lambda: Gradual(until=1), "below 1, found 1"),
        (lambda: Gradual(decay=2), "found 2"),
    ],
)
def test_policies_that_cannot_work_are_refused(make, found):
    with pytest.raises(RecipeError, match=found):
        make()


def test_more_blocks_than_there_are_are_refused_before_anything_is_made(tmp_path):
    with pytest.raises(RecipeError, match="9 blocks shall move, but the network has 3"):
        tuning(tmp_path, Top(9))


def test_a_trunk_at_rest_drops_nothing_while_its_head_learns(tmp_path):
    learner = equipped(Frozen())
    learner.train()
    assert not any(part.training for part in learner.trunk.modules())
    assert all(part.training for part in learner.heads.modules())
    assert not any(parameter.requires_grad for parameter in learner.trunk.parameters())
    assert all(equipped(Layers(move=True)).train().trunk.modules())


def test_a_place_is_above_the_trunk_or_in_it():
    assert [part for part in Part if Place(part, 1).above] == [Part.MIX, Part.HEAD]


def test_scratch_draws_the_trunk_of_every_policy(tmp_path):
    made = tuning(tmp_path, Frozen(), replace(SETTINGS, start=Origin.SCRATCH))
    learner = tuned(made, tmp_path / "run").learner
    assert not torch.equal(learner.trunk.embed.token.weight, made.model.trunk.embed.token.weight)

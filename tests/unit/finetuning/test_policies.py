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

from unmask.config.network import Norm, Sharing
from unmask.config.optim import AdamW, Linear, OptimConfig
from unmask.core.codec import decode, encode
from unmask.core.errors import InputError, RecipeError
from unmask.finetuning.init_weights import StartFrom
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.by_name import METHODS, method_by_name
from unmask.finetuning.methods.frozen import FrozenEncoder, ScalarMixing
from unmask.finetuning.methods.protocol import FullFineTuning, Method, count_trained, param_lrs
from unmask.finetuning.methods.unfreezing import GradualUnfreezing, NormOnly, TopLayers
from unmask.finetuning.parameter_roles import ParameterLocation, ParameterRole, locate_parameters, top_level
from unmask.finetuning.tasks.san_pair import SANClassification
from unmask.objectives.mlm import MLM
from unmask.objectives.row_tasks import Classification, MultiLabel, Ranking, Regression
from unmask.objectives.seq2seq import PrefixLMObjective, Seq2SeqObjective
from unmask.objectives.span_extraction import SpanExtraction
from unmask.train.build_step import build_step_runner
from unmask.train.optim.param_lr import ParamLR, ParamLRFn
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.checkpoint import CHECKPOINTS, MODEL, list_checkpoints, read_tensors

HEADS = (
    Classification(3),
    Regression(),
    MultiLabel(4),
    Ranking(),
    SpanExtraction(),
    SANClassification(3),
    MLM(),
    Seq2SeqObjective(max_positions=8),
    PrefixLMObjective(),
)
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
    trunk = replace(DEEP, depth=max(depth, getattr(policy, "num_blocks", 1)), norm=norm, sharing=sharing)
    learner = equipped(policy, replace(trunk, embedding_width=embedding), HEADS)
    where, paces = locate_parameters(learner), param_lrs(policy, learner)
    assert where.keys() == dict(learner.named_parameters()).keys()
    assert all(isinstance(paces(name), ParamLR) for name in where)
    assert all(0 <= place.level <= top_level(learner) for place in where.values())
    assert all((place.level == top_level(learner)) == place.is_above_encoder for place in where.values())
    assert all(place.is_above_encoder for name, place in where.items() if name.startswith(("heads.", "layer_mix.")))
    assert not any(place.is_above_encoder for name, place in where.items() if name.startswith("network."))


@every
def test_what_rests_stays_bit_for_bit_and_what_moves_changes(tmp_path, policy):
    made = tuning(tmp_path, policy)
    first = copies(equipped(policy))
    learner = tuned(made, tmp_path / "run").learner
    paces = param_lrs(policy, learner)
    assert first.keys() == dict(learner.named_parameters()).keys()
    for name, tensor in learner.named_weights().items():
        assert torch.equal(tensor, first[name]) is not paces(name).is_trained, name
    assert count_trained(learner, policy).num_trained == sum(
        t.numel() for n, t in learner.named_weights().items() if paces(n).is_trained
    )


@every
@pytest.mark.parametrize("beside", [0.0, 0.5])
def test_a_stopped_run_ends_with_the_same_weights(tmp_path, policy, beside):
    if beside and isinstance(policy, FrozenEncoder | ScalarMixing) and not getattr(policy, "train_encoder", False):
        pytest.skip("a trunk at rest has no language model beside it")
    made = tuning(tmp_path, policy, replace(SETTINGS, lm_weight=beside))
    with pytest.raises(Stop):
        tuned(made, tmp_path / "stopped", (stop_at(5),))
    (kept,) = list_checkpoints(tmp_path / "stopped" / CHECKPOINTS)
    again, whole = tuned(made, tmp_path / "stopped").learner, tuned(made, tmp_path / "whole").learner
    for name, tensor in whole.named_weights().items():
        assert torch.equal(tensor, again.named_weights()[name]), name
    paces = param_lrs(policy, whole)
    moving = {name for name in whole.named_weights() if paces(name).is_trained}
    written = {name for name in kept_names(tmp_path / "whole") if not name.startswith("heads.mlm")}
    assert kept.name == "step-000000003"
    assert written == moving, "a checkpoint holds what moves and nothing else"


def kept_names(folder: Path) -> set[str]:
    (last,) = list_checkpoints(folder / CHECKPOINTS)
    return set(read_tensors(last, MODEL))


def test_policies_are_values_that_survive_json():
    for policy in EVERY:
        assert decode(encode(policy), Method) == policy


def levels(paces: ParamLRFn, learner) -> dict[int, set[ParamLR]]:
    found: dict[int, set[ParamLR]] = {}
    for name, place in locate_parameters(learner).items():
        found.setdefault(place.level, set()).add(paces(name))
    return found


def test_layer_wise_decay_has_the_same_ratio_everywhere():
    policy = FullFineTuning(layer_lr_decay=0.5)
    learner = equipped(policy)
    paces = param_lrs(policy, learner)
    assert levels(paces, learner) == {level: {ParamLR(0.5 ** (4 - level))} for level in range(5)}
    run, alone = RunConfig(device=torch.device("cpu")), DistContext(0, 1, torch.device("cpu"))
    worker = build_step_runner(learner, OptimConfig(AdamW(0.25), Linear()), False, 0, run, alone, paces)
    peaks = {id(p): group["peak"] for group in worker.optimizer.param_groups for p in group["params"]}
    for name, parameter in learner.named_parameters():
        assert peaks[id(parameter)] == 0.25 * 0.5 ** (4 - locate_parameters(learner)[name].level)


def test_gradual_unfreezing_goes_from_the_top_down_in_equal_steps():
    policy = GradualUnfreezing()
    learner = equipped(policy)
    found = levels(param_lrs(policy, learner), learner)
    assert [since.from_fraction for level in (4, 3, 2, 1, 0) for since in found[level]] == [0, 0.125, 0.25, 0.375, 0.5]
    scales = [pace.scale for level in (4, 3, 2, 1, 0) for pace in found[level]]
    assert [a / b for a, b in pairwise(scales)] == pytest.approx([2.6] * 4)
    assert scales[0] == 1


def test_shared_blocks_stand_where_the_highest_of_them_stands():
    learner = equipped(TopLayers(), replace(DEEP, sharing=Sharing.ALL))
    blocks = {place.level for place in locate_parameters(learner).values() if place.role is ParameterRole.BLOCK}
    assert blocks == {3}
    assert all(
        param_lrs(TopLayers(), learner)(name).is_trained for name in learner.named_weights() if ".layers." in name
    )


def test_what_is_trained_grows_with_the_policy():
    def count(policy: Method) -> int:
        return count_trained(equipped(policy), policy).num_trained

    head = 16 * 16 + 16 + 16 * 2 + 2
    assert count(FrozenEncoder()) == head
    assert count(ScalarMixing()) == head + 4 + 1
    assert count(NormOnly()) == head + 2 * 16 * 7
    assert count(Adapter(4)) == count(NormOnly()) + 3 * 2 * (2 * 4 * 16 + 16 + 4)
    assert (
        count(FrozenEncoder())
        < count(TopLayers(1))
        < count(TopLayers(2))
        < count(TopLayers(3))
        < count(FullFineTuning())
    )
    assert count_trained(equipped(FullFineTuning()), FullFineTuning()).trained_fraction == 1
    assert count(GradualUnfreezing()) == count(FullFineTuning())


def test_a_policy_is_chosen_by_name_and_only_with_its_own_options():
    assert {type(method_by_name(policy.name, {})) for policy in METHODS} == set(METHODS)
    assert method_by_name("adapter", {"width": 8}) == Adapter(8)
    assert method_by_name("full", {"layer_lr_decay": 0.9}) == FullFineTuning(0.9)
    assert method_by_name("top", {"num_blocks": 2}) == TopLayers(2)
    assert method_by_name("frozen", {"cache_features": False}) == FrozenEncoder(cache_features=False)
    with pytest.raises(InputError, match="--adapter-width has no effect with --method frozen; it is for adapter"):
        method_by_name("frozen", {"width": 8})
    with pytest.raises(InputError, match="it is for full and gradual"):
        method_by_name("norms", {"layer_lr_decay": 0.9})
    with pytest.raises(InputError, match=r"There is no method 'adaptor'\. Choose one of: full, frozen, layers"):
        method_by_name("adaptor", {})


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: FullFineTuning(layer_lr_decay=0), "found 0"),
        (lambda: FullFineTuning(layer_lr_decay=1.5), "found 1.5"),
        (lambda: Adapter(0), "a width of at least 1"),
        (lambda: TopLayers(0), "at least 1 block"),
        (lambda: GradualUnfreezing(unfreeze_fraction=1), "below 1, found 1"),
        (lambda: GradualUnfreezing(layer_lr_decay=2), "found 2"),
    ],
)
def test_policies_that_cannot_work_are_refused(make, found):
    with pytest.raises(RecipeError, match=found):
        make()


def test_more_blocks_than_there_are_are_refused_before_anything_is_made(tmp_path):
    with pytest.raises(RecipeError, match="--num-top-blocks 9: the network has 3 blocks"):
        tuning(tmp_path, TopLayers(9))


def test_a_trunk_at_rest_drops_nothing_while_its_head_learns(tmp_path):
    learner = equipped(FrozenEncoder())
    learner.train()
    assert not any(part.training for part in learner.network.modules())
    assert all(part.training for part in learner.heads.modules())
    assert not any(parameter.requires_grad for parameter in learner.network.parameters())
    assert all(equipped(ScalarMixing(train_encoder=True)).train().network.modules())


def test_a_place_is_above_the_trunk_or_in_it():
    assert [part for part in ParameterRole if ParameterLocation(part, 1).is_above_encoder] == [
        ParameterRole.MIX,
        ParameterRole.HEAD,
    ]


def test_scratch_draws_the_trunk_of_every_policy(tmp_path):
    made = tuning(tmp_path, FrozenEncoder(), replace(SETTINGS, start=StartFrom.SCRATCH))
    learner = tuned(made, tmp_path / "run").learner
    assert not torch.equal(learner.network.embed.token.weight, made.model.network.embed.token.weight)

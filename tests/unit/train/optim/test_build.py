"""Optimizers against readable loops over single numbers, their groups, their state and the clipping of gradients."""

import math

import numpy as np
import pytest
import torch
from little_net import EVERY, MUON, STEPS, gradients, groups_of, little, run
from torch import nn

import unmask.train.optim.muon
from unmask.config.network import Sharing, TransformerConfig
from unmask.config.optim import (
    LAMB,
    AdamW,
    Cosine,
    Linear,
    Muon,
    OptimConfig,
    StableAdamW,
    UpdateScale,
    WarmupFraction,
    WarmupSteps,
)
from unmask.core import codec
from unmask.core.errors import RecipeError
from unmask.nets.encoder import TransformerEncoder, num_parameters
from unmask.train.optim.build import build_optimizer
from unmask.train.optim.muon import BatchedMuon as StackedMuon
from unmask.train.optim.param_groups import ParamKind, group_parameters
from unmask.train.step import clip_gradients, set_lr


@pytest.fixture(autouse=True)
def _one_thread():
    """These tensors are tiny: threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def loop(spec: AdamW | LAMB | StableAdamW, weight: np.ndarray, steps: list[np.ndarray], scale: float = 1) -> np.ndarray:
    """One tensor, number by number."""
    w, shape, decays = [float(x) for x in weight.ravel()], weight.shape, weight.ndim >= 2
    m, v = [0.0] * len(w), [0.0] * len(w)
    for t, gradient in enumerate(steps, 1):
        rate = spec.lr * scale * t / STEPS
        m_scale = 1 - spec.betas[0] ** t if spec.bias_correction else 1.0
        v_scale = 1 - spec.betas[1] ** t if spec.bias_correction else 1.0
        update, surprise = [], []
        for i, g in enumerate(float(x) for x in gradient.ravel()):
            m[i] = spec.betas[0] * m[i] + (1 - spec.betas[0]) * g
            v[i] = spec.betas[1] * v[i] + (1 - spec.betas[1]) * g * g
            decay = spec.weight_decay * w[i] if decays else 0.0
            update.append(m[i] / m_scale / (math.sqrt(v[i] / v_scale) + spec.eps) + decay)
            surprise.append(g * g / max(v[i] / v_scale, spec.eps**2))
        if isinstance(spec, LAMB) and decays:
            long, far = math.sqrt(sum(x * x for x in w)), math.sqrt(sum(x * x for x in update))
            rate *= long / far if long > 0 and far > 0 else 1.0
        if isinstance(spec, StableAdamW):
            rate /= max(1.0, math.sqrt(sum(surprise) / len(surprise)))
        w = [x - rate * u for x, u in zip(w, update, strict=True)]
    return np.array(w).reshape(shape)


@pytest.mark.parametrize("spec", [spec for spec in EVERY if spec is not MUON], ids=repr)
def test_five_steps_equal_a_readable_loop(spec):
    net = little()
    steps = gradients(net)
    wanted = {
        name: loop(spec, parameter.detach().numpy().copy(), [step[name].numpy() for step in steps])
        for name, parameter in net.named_parameters()
    }
    run(net, build_optimizer(spec, groups_of(net)), steps)
    for name, parameter in net.named_parameters():
        np.testing.assert_allclose(parameter.detach().numpy(), wanted[name], rtol=1e-6, atol=1e-12, err_msg=name)


def test_bias_correction_makes_a_difference():
    ends = []
    for correct in (False, True):
        net = little()
        run(net, build_optimizer(AdamW(1e-2, bias_correction=correct), groups_of(net)), gradients(net))
        ends.append(net.token.weight.detach())
    assert not torch.allclose(ends[0], ends[1], rtol=1e-2)


def test_bias_correction_of_one_kernel_is_that_of_torch():
    ours, theirs = little(), little()
    run(ours, build_optimizer(AdamW(1e-2, bias_correction=True), groups_of(ours)), gradients(ours))
    plain = [{"params": [p], "peak": 1e-2, "weight_decay": 0.01 * (p.dim() > 1)} for p in theirs.parameters()]
    run(theirs, torch.optim.AdamW(plain, lr=1e-2, eps=1e-6, foreach=False), gradients(theirs))
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-14)


def orthogonal(matrix: np.ndarray, rounds: int) -> np.ndarray:
    """Newton-Schulz in double precision."""
    x = matrix / np.linalg.norm(matrix)
    for _ in range(rounds):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


@pytest.mark.parametrize(
    ("sizing", "size"), [(UpdateScale.ORIGINAL, 1.0), (UpdateScale.MATCH_ADAMW, 0.2 * math.sqrt(4))]
)
def test_muon_moves_matrices_by_the_orthogonal_momentum_and_the_rest_by_adamw(sizing, size):
    net, spec = little(), Muon(0.02, AdamW(1e-2), update_scale=sizing)
    steps = gradients(net)
    name = "layers.0.2.weight"
    wanted = net.get_parameter(name).detach().numpy().copy()
    table = loop(spec.adamw, net.token.weight.detach().numpy().copy(), [step["token.weight"].numpy() for step in steps])
    run(net, build_optimizer(spec, groups_of(net)), steps)
    momentum = np.zeros_like(wanted)
    for t, step in enumerate(steps, 1):
        gradient, rate = step[name].numpy(), 0.02 * t / STEPS
        momentum = 0.95 * momentum + 0.05 * gradient
        update = orthogonal(0.05 * gradient + 0.95 * momentum, spec.ns_steps)
        wanted = wanted - rate * 0.1 * wanted - rate * size * update
    # torch iterates in bfloat16, so only two to three digits of the update agree
    np.testing.assert_allclose(net.get_parameter(name).detach().numpy(), wanted, atol=0.02 * size * 0.05)
    np.testing.assert_allclose(net.token.weight.detach().numpy(), table, rtol=1e-6)


@pytest.mark.parametrize("at_once", [1, 3 * 32 * 64, 1 << 25])
@pytest.mark.parametrize("sizing", list(UpdateScale))
def test_muon_on_stacked_matrices_is_that_of_torch_one_by_one(sizing, at_once, monkeypatch):
    """Wide, tall and square ones, some without a gradient; the same bits on a CPU, whatever is stacked."""
    monkeypatch.setattr(unmask.train.optim.muon, "_MAX_STACKED", at_once)
    generator = torch.Generator().manual_seed(2)
    shapes = [(32, 64), (64, 32), (32, 32), (32, 64), (32, 64), (64, 32), (32, 64), (32, 64)]
    first = [torch.randn(shape, generator=generator) for shape in shapes]
    ours, theirs = ([nn.Parameter(one.clone()) for one in first] for _ in range(2))
    spec = Muon(0.02, AdamW(1e-2), update_scale=sizing)
    stacked = StackedMuon([{"params": ours, "lr": 0.02, "weight_decay": spec.weight_decay}], spec)
    single = torch.optim.Muon(theirs, lr=0.02, weight_decay=spec.weight_decay, adjust_lr_fn=sizing.value)
    for step in range(3):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            gradient = torch.randn(one.shape, generator=generator)
            one.grad, other.grad = (None, None) if number == 4 and step else (gradient.clone(), gradient.clone())
        stacked.step()
        single.step()
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(stacked.state[one]["momentum_buffer"], single.state[other]["momentum_buffer"])


def test_muon_brings_singular_values_near_one():
    layer = nn.Linear(32, 64)
    net = nn.ModuleDict({"block": layer, "head": nn.Linear(64, 3)})
    before = layer.weight.detach().clone()
    optimizer = build_optimizer(
        Muon(1.0, AdamW(1e-2), weight_decay=0.0, update_scale=UpdateScale.ORIGINAL), group_parameters(net, [layer])
    )
    for parameter in net.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    spread = torch.linalg.svdvals(layer.weight.grad)
    optimizer.step()
    moved = torch.linalg.svdvals((before - layer.weight.detach()) / math.sqrt(2))
    assert spread.max() / spread.min() > 3
    assert moved.min() > 0.6
    assert moved.max() < 1.3


def test_every_parameter_is_in_exactly_one_group_and_shared_ones_once():
    net = little()
    found = {group.kind: sorted(group.parameters) for group in groups_of(net)}
    assert found == {
        ParamKind.TABLE: ["token.weight"],
        ParamKind.MATRIX: ["layers.0.1.weight", "layers.0.2.weight", "layers.1.2.weight"],
        ParamKind.VECTOR: sorted(name for name, parameter in net.named_parameters() if parameter.dim() < 2),
    }
    held = [id(parameter) for group in groups_of(net) for parameter in group.parameters.values()]
    assert len(held) == len(set(held)) == len(list(net.parameters()))


@pytest.mark.parametrize("sharing", list(Sharing))
def test_groups_hold_a_whole_network_once(sharing):
    trunk = TransformerConfig(depth=3, width=8, heads=2, ffn_width=16, embedding_width=4, sharing=sharing)
    net = TransformerEncoder(trunk, vocab_size=11, max_positions=5)
    groups = group_parameters(net, net.blocks())
    assert sum(parameter.numel() for group in groups for parameter in group.parameters.values()) == num_parameters(net)
    tables = next(group for group in groups if group.kind is ParamKind.TABLE)
    assert sorted(tables.parameters) == [f"embed.{part}.weight" for part in ("position", "project", "segment", "token")]


def test_frozen_parameters_are_left_out():
    net = little()
    net.token.weight.requires_grad_(False)
    assert all("token.weight" not in group.parameters for group in groups_of(net))


def test_norms_and_biases_do_not_decay():
    net = little()
    for spec in EVERY:
        for group in build_optimizer(spec, groups_of(net)).param_groups:
            assert {parameter.dim() >= 2 for parameter in group["params"]} == {group["weight_decay"] > 0}


@pytest.mark.parametrize("spec", [AdamW(1e-2), LAMB(1e-2), StableAdamW(1e-2)], ids=repr)
def test_a_layer_may_take_a_part_of_the_rate(spec):
    net = little()
    steps, name = gradients(net), "layers.0.2.weight"
    wanted = loop(spec, net.get_parameter(name).detach().numpy().copy(), [step[name].numpy() for step in steps], 0.25)
    groups = group_parameters(net, net.layers, lambda name: 0.25 if name.startswith("layers.0.") else 1.0)
    assert {group.lr_scale for group in groups} == {0.25, 1.0}
    run(net, build_optimizer(spec, groups), steps)
    np.testing.assert_allclose(net.get_parameter(name).detach().numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("spec", EVERY, ids=repr)
def test_a_parameter_without_a_gradient_stays(spec):
    net = little()
    optimizer = build_optimizer(spec, groups_of(net))
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    net.layers[0](torch.ones(1, 4, dtype=torch.float64)).square().sum().backward()
    optimizer.step()
    assert torch.equal(net.token.weight, before["token.weight"])
    assert torch.equal(net.layers[1][2].bias, before["layers.1.2.bias"])
    assert not torch.equal(net.layers[0][2].weight, before["layers.0.2.weight"])


@pytest.mark.parametrize("limit", [0.5, 1e6])
def test_clipping_equals_torch(limit):
    ours, theirs = little(), little()
    for net in (ours, theirs):
        for name, gradient in gradients(net)[0].items():
            net.get_parameter(name).grad = gradient
        net.head.bias.grad = None
    norm = clip_gradients(ours.parameters(), limit)
    assert torch.equal(norm, nn.utils.clip_grad_norm_(theirs.parameters(), limit))
    flat = torch.cat([p.grad.flatten() for p in ours.parameters() if p.grad is not None])
    assert float(flat.norm()) == pytest.approx(min(limit, float(norm)), rel=1e-5)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        assert one.grad is None or torch.equal(one.grad, other.grad)


def test_a_limit_of_zero_only_measures():
    net = little()
    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 2.0)
    count = sum(parameter.numel() for parameter in net.parameters())
    assert float(clip_gradients(net.parameters(), 0.0)) == pytest.approx(2 * math.sqrt(count))
    assert all(bool((parameter.grad == 2).all()) for parameter in net.parameters())


@pytest.mark.parametrize("spec", EVERY, ids=repr)
def test_every_optimizer_learns(spec):
    net, ids = little(torch.float32), torch.arange(7)
    optimizer = build_optimizer(spec, groups_of(net))
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(ids), (ids + 1) % 7)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("spec", EVERY, ids=repr)
def test_no_step_waits_for_the_device(spec):
    net = little(torch.float32).cuda()
    optimizer = build_optimizer(spec, groups_of(net))
    net(torch.arange(7, device="cuda")).square().sum().backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(2):
            clip_gradients(net.parameters(), 1.0)
            set_lr(optimizer, 0.5)
            optimizer.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_descent_is_a_value_that_can_be_saved_and_changed():
    descents = [OptimConfig(spec, Cosine(WarmupFraction(0.06)), max_grad_norm=0.0) for spec in EVERY]
    assert [codec.decode(codec.encode(descent), OptimConfig) for descent in descents] == descents
    bert = OptimConfig(AdamW(1e-4), Linear(WarmupSteps(10_000)))
    assert codec.override(bert, "optimizer.lr", "5e-5") == OptimConfig(AdamW(5e-5), Linear(WarmupSteps(10_000)))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: AdamW(0.0),
        lambda: AdamW(float("inf")),
        lambda: AdamW(1e-4, betas=(0.9, 1.0)),
        lambda: LAMB(1e-3, eps=0.0),
        lambda: StableAdamW(1e-3, weight_decay=-0.1),
        lambda: Muon(0.02, AdamW(1e-4), momentum=1.0),
        lambda: Muon(0.02, AdamW(1e-4), ns_steps=0),
    ],
)
def test_an_optimizer_that_cannot_work_is_refused_with_a_sentence(wrong):
    with pytest.raises(RecipeError, match=r"needs .*; found .*\."):
        wrong()


def test_nothing_to_train_is_refused():
    net = little()
    with pytest.raises(RecipeError, match="needs matrices inside the blocks"):
        build_optimizer(MUON, group_parameters(net, []))
    net.requires_grad_(False)
    with pytest.raises(RecipeError, match="every part of the network is frozen"):
        build_optimizer(AdamW(1e-4), groups_of(net))

"""Attention in kernels of our own: the dense reference in outputs and gradients, and the same dropout on both ways.

Without a GPU the kernels run in Triton's interpreter.
"""

from functools import partial
from itertools import accumulate
from math import prod
from types import SimpleNamespace

import interpreted
import pytest
import torch

from unmask.config.network import TransformerConfig
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.encoder import TokenInputs, TransformerEncoder, init_weights
from unmask.nets.kernels import dispatch
from unmask.nets.kernels.attention import triton_attention, triton_attention_subset
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, attention_seed_count
from unmask.nets.kernels.triton.attention_tiles import AttentionTiles, Tile, tiles_for, tiles_for_query_subset
from unmask.nets.layers import attention as attention_module
from unmask.nets.layers.attention import AttentionBackend, attention, select_backend

DEVICE = interpreted.DEVICE
gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
SIGHTS = [
    (MaskKind.FULL, 0),
    (MaskKind.CAUSAL, 0),
    (MaskKind.SLIDING_WINDOW, 0),
    (MaskKind.SLIDING_WINDOW, 5),
    (MaskKind.SLIDING_WINDOW, 40),
]
MIXED = [33, 1, 0, 50, 16]
"""Lengths: one, none, a tile, more than one, some of them full."""
LONG = AttentionTiles(Tile(32, 16, 4, 1), Tile(16, 32, 4, 1), Tile(32, 16, 4, 1))
OTHER = AttentionTiles(Tile(16, 32, 4, 1), Tile(32, 16, 4, 1), Tile(16, 16, 4, 1))
SHORT = AttentionTiles(Tile(32, 64, 4, 1, turns=2), Tile(64, 64, 4, 1, turns=2))
every_sight = pytest.mark.parametrize(("sight", "reach"), SIGHTS)


def borders(lengths, sight=MaskKind.FULL, reach=0):
    return PackedSequences.of([0, *accumulate(lengths)], DEVICE, sight, window=reach)


def states(lengths, heads=2, width=16, dtype=torch.float32):
    shape = sum(lengths), 3, heads, width
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(DEVICE, dtype)


def both(way, qkv):
    """Outputs, and gradients of a sum in which every output has a weight of its own."""
    leaf = qkv.detach().requires_grad_()
    y = way(leaf)
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(2)).to(y)
    (grad,) = torch.autograd.grad((y * weights).sum(), leaf)
    return y.detach(), grad


def close(found, exact, tolerance=1e-5):
    return all(
        (one.float() - two.float()).abs().max() <= tolerance * two.abs().max()
        for one, two in zip(found, exact, strict=True)
    )


@every_sight
@pytest.mark.parametrize("tiles", [LONG, OTHER, SHORT, None], ids=["long", "other", "short", "table"])
def test_outputs_and_gradients_are_those_of_the_dense_reference(sight, reach, tiles):
    qkv, around = states(MIXED), borders(MIXED, sight, reach)
    found = both(lambda x: triton_attention(x, around, 0.0, tiles=tiles), qkv)
    assert close(found, both(lambda x: attention(AttentionBackend.REFERENCE, x, around), qkv))


@pytest.mark.parametrize("width", [16, 32, 64, 128])
@pytest.mark.parametrize("lengths", [[1, 1], [3, 16], [20, 32, 5], [70, 3]])
def test_every_width_of_heads_and_every_size_of_tiles(width, lengths):
    qkv, around = states(lengths, heads=3, width=width), borders(lengths)
    found = both(lambda x: attention(AttentionBackend.TRITON, x, around), qkv)
    assert close(found, both(lambda x: attention(AttentionBackend.REFERENCE, x, around), qkv))


@pytest.mark.parametrize("shared", [1 << 20, 100_000], ids=["large card", "small card"])
@pytest.mark.parametrize(("width", "lengths"), [(64, [100, 1, 0, 128]), (64, [129, 3, 200]), (128, [90, 128])])
def test_the_tiles_that_a_gpu_takes(width, lengths, shared):
    """In halves, for which those of the tables are; the interpreter has no bfloat16."""
    qkv, around = states(lengths, heads=4, width=width, dtype=torch.float16), borders(lengths)
    tiles = tiles_for(width, max(lengths), torch.float16, shared)
    exact = both(lambda x: attention(AttentionBackend.REFERENCE, x, around), qkv.float())
    assert close(both(lambda x: triton_attention(x, around, 0.0, tiles=tiles), qkv), exact, 5e-3)


def test_a_small_card_gets_tiles_that_share_less():
    large, small = (tiles_for(64, 128, torch.bfloat16, shared) for shared in (1 << 20, 101_376))
    assert small.back.stages == 1 < large.back.stages
    assert tiles_for(128, 128, torch.bfloat16, 101_376).queries is not None


@pytest.mark.filterwarnings("ignore:overflow encountered in exp2")  # of pairs that are hidden a moment later
def test_large_scores_stay_numbers():
    """Scores in the thousands: of whole numbers, so that they are exact in whatever order a host's library adds."""
    qkv, around = (states(MIXED) * 20).round(), borders(MIXED, MaskKind.CAUSAL)
    for tiles in (LONG, SHORT):
        found = both(lambda x, tiles=tiles: triton_attention(x, around, 0.0, tiles=tiles), qkv)
        assert close(found, both(lambda x: attention(AttentionBackend.REFERENCE, x, around), qkv), 1e-3)


def test_gradients_are_slopes():
    lengths, step = [5, 3], 1e-2
    qkv, around = states(lengths, heads=1), borders(lengths, MaskKind.CAUSAL)
    towards = torch.randn(qkv.shape, generator=torch.Generator().manual_seed(3)).to(qkv)

    def total(x):
        torch.manual_seed(5)
        return triton_attention(x, around, 0.3, tiles=LONG).double().sin().sum()

    leaf = qkv.clone().requires_grad_()
    total(leaf).backward()
    slope = (total(qkv + step * towards) - total(qkv - step * towards)) / (2 * step)
    assert (leaf.grad * towards).sum().item() == pytest.approx(slope.item(), rel=1e-3)


def test_the_gradient_of_a_broadcast_is_taken():
    qkv, around = states([9, 4]).requires_grad_(), borders([9, 4])
    triton_attention(qkv, around).sum().backward()
    (exact,) = torch.autograd.grad(attention(AttentionBackend.REFERENCE, qkv, around).sum(), qkv)
    assert close([qkv.grad], [exact])


@every_sight
@pytest.mark.parametrize("tiles", [LONG, OTHER, SHORT], ids=["long", "other", "short"])
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_a_bias_is_paid_the_gradient_of_the_states_summed_over_tokens(sight, reach, tiles, rate):
    qkv, around = states(MIXED).requires_grad_(), borders(MIXED, sight, reach)
    bias = torch.zeros(qkv[0].numel(), device=DEVICE, requires_grad=True)
    y = triton_attention(qkv, around, rate, bias, tiles)
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(2)).to(y)
    each, paid = torch.autograd.grad((y * weights).sum(), (qkv, bias))
    assert close([paid], [each.sum(0).flatten()])


@pytest.mark.parametrize("lowering", [AttentionBackend.TRITON, AttentionBackend.REFERENCE])
def test_every_lowering_pays_a_bias_that_is_owed(lowering):
    qkv, around = states(MIXED).requires_grad_(), borders(MIXED)
    bias = torch.zeros(qkv[0].numel(), device=DEVICE, requires_grad=True)
    each, paid = torch.autograd.grad(attention(lowering, qkv, around, deferred_bias_3D=bias).sin().sum(), (qkv, bias))
    assert close([paid], [each.sum(0).flatten()])
    frozen = bias.detach()
    (again,) = torch.autograd.grad(attention(lowering, qkv, around, deferred_bias_3D=frozen).sin().sum(), qkv)
    assert torch.equal(again, each)


def left_in(draws, lengths, heads, rate):
    """Which pairs are left in: head, query and key of each sequence."""
    total = sum(lengths)
    numbers = draws.long()[: (heads + 1) * total].view(heads + 1, total)
    query, key = numbers[:-1].split(lengths, 1), numbers[-1].split(lengths)
    return [(q[..., None] * k & 0xFFFFFFFF) >= rate * 2.0**32 for q, k in zip(query, key, strict=True)]


def written_out(qkv, around, lengths, masks, rate):
    """Attention with these masks, one sequence after another."""
    y = []
    for one, mask, length in zip(qkv.split(lengths), masks, lengths, strict=True):
        q, k, v = one.permute(1, 2, 0, 3)
        place = torch.arange(length, device=DEVICE)
        apart = place[:, None] - place
        hidden = apart < 0 if around.mask_kind is MaskKind.CAUSAL else apart.abs() > around.window
        scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5
        scores = scores if around.mask_kind is MaskKind.FULL else scores.masked_fill(hidden, -torch.inf)
        y.append((scores.softmax(-1) * mask / (1 - rate) @ v).transpose(0, 1))
    return torch.cat(y)


@pytest.mark.parametrize(("sight", "reach"), [(MaskKind.FULL, 0), (MaskKind.CAUSAL, 0), (MaskKind.SLIDING_WINDOW, 5)])
@pytest.mark.parametrize("tiles", [LONG, SHORT], ids=["long", "short"])
def test_both_ways_leave_out_the_same_pairs(sight, reach, tiles):
    rate, qkv, around = 0.3, states(MIXED), borders(MIXED, sight, reach)
    torch.manual_seed(7)
    masks = left_in(PER_CALL_SEEDS.take(attention_seed_count(2, len(qkv), len(qkv)), qkv), MIXED, 2, rate)
    share = torch.cat([mask.flatten() for mask in masks]).float().mean()
    assert abs(share - 0.7) < 0.02
    torch.manual_seed(7)
    found = both(lambda x: triton_attention(x, around, rate, tiles=tiles), qkv)
    assert close(found, both(lambda x: written_out(x, around, MIXED, masks, rate), qkv))


def test_tiles_do_not_matter_to_dropout():
    qkv, around = states(MIXED), borders(MIXED)
    found = []
    for tiles in (LONG, SHORT, OTHER):
        torch.manual_seed(3)
        found.append(both(lambda x, tiles=tiles: triton_attention(x, around, 0.1, tiles=tiles), qkv))
    assert close(found[1], found[0])
    assert close(found[2], found[0])


def test_the_mean_over_many_draws_is_attention_without_dropout():
    draws, length = 300, 6
    qkv = states([length], heads=1)
    torch.manual_seed(0)
    y = triton_attention(qkv.repeat(draws, 1, 1, 1), borders([length] * draws), 0.4).view(draws, length, -1)
    exact = attention(AttentionBackend.REFERENCE, qkv, borders([length])).view(length, -1)
    assert ((y.mean(0) - exact).abs() < 6 * y.std(0) / draws**0.5).all()
    assert (y[0] != y[1]).any()


def test_the_seed_decides():
    def run(seed):
        torch.manual_seed(seed)
        return triton_attention(states([20]), borders([20]), 0.1)

    assert torch.equal(run(3), run(3))
    assert not torch.equal(run(3), run(4))


def test_tiles_fit_sequences():
    half = torch.bfloat16
    assert tiles_for(64, 129, half).queries is not None
    for longest in (1, 16, 17, 64, 100, 128):
        tiles = tiles_for(64, longest, half)
        assert tiles.queries is None
        assert tiles.forward.keys >= longest
        assert tiles.back.queries == tiles.back.keys >= longest
        assert tiles.back.keys < max(2 * longest, 17)


ASKING = [0, 5, 5, 32, 34, 34, 34, 40, *[90] * 70, 99]
"""Places of MIXED that ask: none of some sequences, and one of them more often than its sequence has tokens."""


def asks(places, around):
    return torch.searchsorted(torch.tensor(places, device=DEVICE), around.cu_seqlens_S1.long(), out_int32=True)


def some_of(qkv, around, places, rate=0.0, bias=None):
    """What some places hear, with queries of their own."""
    q = qkv[:, 0].index_select(0, torch.tensor(places, device=DEVICE))
    return triton_attention_subset(q, qkv[:, 1:], around, asks(places, around), rate, bias)


@pytest.mark.parametrize("places", [ASKING, [3], [33], list(range(100))], ids=["many", "one", "the only", "all"])
@pytest.mark.parametrize("width", [16, 64])
def test_what_some_places_hear_is_what_they_hear_among_all(places, width):
    qkv, around = states(MIXED, width=width), borders(MIXED)
    found = both(lambda x: some_of(x, around, places), qkv)
    assert close(found, both(lambda x: attention(AttentionBackend.REFERENCE, x, around)[torch.tensor(places)], qkv))


@pytest.mark.parametrize("width", [16, 32, 64, 128])
def test_the_tiles_that_a_gpu_takes_where_some_places_ask(width):
    lengths = [100, 1, 0, 140]
    qkv, around, places = states(lengths, 4, width, torch.float16), borders(lengths), [0, 7, *range(100, 200, 7)]
    exact = both(lambda x: attention(AttentionBackend.REFERENCE, x, around)[torch.tensor(places)], qkv.float())
    assert close(both(lambda x: some_of(x, around, places), qkv), exact, 5e-3)
    assert tiles_for_query_subset(width, torch.bfloat16, 101_376).forward.queries <= 64


@pytest.mark.parametrize("places", [ASKING, sorted([*range(100)] * 3)], ids=["some", "each three times"])
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_a_bias_is_paid_where_some_places_ask(rate, places):
    qkv, around = states(MIXED).requires_grad_(), borders(MIXED)
    bias = torch.zeros(qkv[0].numel(), device=DEVICE, requires_grad=True)
    y = some_of(qkv, around, places, rate, bias)
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(2)).to(y)
    each, paid = torch.autograd.grad((y * weights).sum(), (qkv, bias))
    assert close([paid], [each.sum(0).flatten()])


def test_both_ways_leave_out_the_same_pairs_where_some_places_ask():
    """Each place asks as often as it is named, with coins of its own."""
    rate, qkv, around = 0.3, states(MIXED), borders(MIXED)
    torch.manual_seed(7)
    drawn = PER_CALL_SEEDS.take(attention_seed_count(2, len(ASKING), len(qkv)), qkv).long()
    one, other = drawn[: 2 * len(ASKING)].view(2, -1), drawn[2 * len(ASKING) :][: len(qkv)]
    left = (one[..., None] * other & 0xFFFFFFFF) >= rate * 2.0**32
    home = around.sequence_id_T(len(qkv))
    at = torch.tensor(ASKING, device=DEVICE)

    def written(x):
        q, k, v = x.permute(1, 2, 0, 3)
        scores = q[:, at] @ k.transpose(1, 2) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(home[at][:, None] != home, -torch.inf).softmax(-1)
        return (weights * left / (1 - rate) @ v).transpose(0, 1)

    torch.manual_seed(7)
    assert close(both(lambda x: some_of(x, around, ASKING, rate), qkv), both(written, qkv))


@pytest.mark.parametrize("lowering", [AttentionBackend.TRITON, AttentionBackend.AUTO])
@pytest.mark.parametrize("kernels", [True, False])
def test_a_network_learns_from_some_places_what_it_learns_from_all(lowering, kernels):
    """Two lists, neither in order, with places in common."""
    trunk = TransformerConfig(depth=2, width=32, heads=2, ffn_width=48, dropout=0.0, attention_dropout=0.0)
    made = TransformerEncoder(trunk, 20, 64)
    init_weights(made, 0.3, torch.Generator().manual_seed(1))
    made.to(DEVICE)
    dispatch.use_kernels(made, kernels)
    for block in made.blocks():
        block.attention.sublayer.backend = lowering
    ids = torch.arange(sum(MIXED), device=DEVICE) % 20
    batch = TokenInputs(ids, ids, ids % 2, borders(MIXED))
    asked = tuple(torch.tensor(some, device=DEVICE) for some in ([90, 3, 34, 3], [3, 99, 60]))

    def learned(sparing):
        made.sparse_last_block = sparing
        made.zero_grad()
        states = made(batch, asked if sparing else ())
        parts = [states.select(some) for some in asked]
        sum((part * (1 + turn)).sin().sum() for turn, part in enumerate(parts)).backward()
        return [*parts, *(p.grad for p in made.parameters() if p.grad is not None)]

    assert close(learned(True), learned(False), 1e-4)


def fake(dtype=torch.bfloat16, width=64, cuda=True, shape=None):
    shape = shape or (8, 3, 2, width)
    sizes = {"shape": shape, "dim": lambda: len(shape), "numel": lambda: prod(shape)}
    return SimpleNamespace(is_cuda=cuda, is_cpu=not cuda, dtype=dtype, **sizes)


def test_the_kernel_is_taken_on_a_gpu_and_never_where_it_cannot_be_had(monkeypatch):
    monkeypatch.setattr(dispatch, "_interpreted", lambda: False)
    kernel, auto = AttentionBackend.TRITON, partial(select_backend, AttentionBackend.AUTO, fused=True)
    assert auto(fake(), 0.1) is kernel
    assert auto(fake(), 0.1, mask_kind=MaskKind.SLIDING_WINDOW) is kernel
    assert auto(fake(), 0.1, fused=False) is AttentionBackend.SDPA
    assert auto(fake(), 0.0) is kernel
    assert auto(fake(), 0.0, fused=False) is AttentionBackend.VARLEN
    assert auto(fake(width=48), 0.0) is AttentionBackend.VARLEN
    assert auto(fake(), 0.1, mask_kind=MaskKind.PREFIX_LM) is AttentionBackend.SDPA
    assert auto(fake(torch.float32), 0.1) is AttentionBackend.SDPA
    assert auto(fake(width=48), 0.1) is AttentionBackend.SDPA
    assert auto(fake(shape=(8, 2, 64)), 0.1) is AttentionBackend.SDPA, "queries alone, as a look at a source has them"
    assert auto(fake(cuda=False), 0.1) is AttentionBackend.LOOP
    assert select_backend(kernel, fake(torch.float32), 0.0) is kernel
    assert select_backend(kernel, fake(), 0.0, MaskKind.PREFIX_LM) is AttentionBackend.SDPA
    assert select_backend(kernel, fake(cuda=False), 0.0) is AttentionBackend.SDPA


@gpu
@every_sight
@pytest.mark.parametrize("lengths", [[128] * 3, [512] * 2, [100, 1, 128, 77], [512, 3, 300, 129]])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_on_a_gpu_halves_come_near_the_reference(sight, reach, lengths, dtype):
    qkv, around = states(lengths, 12, 64, dtype), borders(lengths, sight, reach)
    exact = both(lambda x: attention(AttentionBackend.REFERENCE, x, around), qkv.float())
    assert close(both(lambda x: attention(AttentionBackend.TRITON, x, around), qkv), exact, 2e-2)


@gpu
@pytest.mark.parametrize("lengths", [[128] * 3, [512] * 2, [512, 3, 300, 129]])
@pytest.mark.parametrize("every", [1, 7, 40])
def test_on_a_gpu_some_places_hear_in_halves_what_they_hear_among_all(lengths, every):
    qkv, around, places = states(lengths, 12, 64, torch.bfloat16), borders(lengths), list(range(0, sum(lengths), every))
    exact = both(
        lambda x: attention(AttentionBackend.REFERENCE, x, around)[torch.tensor(places, device=DEVICE)], qkv.float()
    )
    assert close(both(lambda x: some_of(x, around, places), qkv), exact, 2e-2)


@gpu
@pytest.mark.parametrize("lengths", [[128] * 3, [512, 3, 300, 129]])
def test_on_a_gpu_dropout_in_halves_leaves_out_the_same_pairs_on_both_ways(lengths):
    rate, qkv, around = 0.1, states(lengths, 2, 64, torch.bfloat16), borders(lengths)
    torch.manual_seed(7)
    masks = left_in(PER_CALL_SEEDS.take(attention_seed_count(2, len(qkv), len(qkv)), qkv), lengths, 2, rate)
    torch.manual_seed(7)
    found = both(lambda x: triton_attention(x, around, rate), qkv)
    assert close(found, both(lambda x: written_out(x, around, lengths, masks, rate), qkv.float()), 2e-2)


@gpu
@pytest.mark.parametrize("lengths", [[128, 90], [300, 20]])
def test_a_recording_draws_anew_each_time_it_is_repeated(lengths):
    qkv, around = states(lengths, 2, 64, torch.bfloat16).requires_grad_(), borders(lengths)

    def step():
        y = triton_attention(qkv, around, 0.1)
        return y, torch.autograd.grad(y.float().sum(), qkv)[0]

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, grad = step()
    found = []
    for _ in range(2):
        graph.replay()
        found.append((y.clone(), grad.clone()))
    assert all(not torch.equal(one, two) for one, two in zip(*found, strict=True))
    assert all(one.isfinite().all() for pair in found for one in pair)


class Other(torch.nn.Linear):
    """A projection with something beside it, as an adapter has."""


@pytest.mark.parametrize("kind", [torch.nn.Linear, Other])
def test_whatever_projects_attention_may_take_kernels(kind, monkeypatch):
    asked = []
    monkeypatch.setattr(
        attention_module, "select_backend", lambda *words: asked.append(words[-1]) or AttentionBackend.REFERENCE
    )
    layer = attention_module.SelfAttention(TransformerConfig(depth=1, width=32, heads=2, ffn_width=32)).to(DEVICE)
    layer.qkv = kind(32, 96, device=DEVICE)
    dispatch.use_kernels(layer)
    layer(torch.randn(5, 32, device=DEVICE), borders([5])).sum().backward()
    assert asked == [True]
    assert layer.qkv.bias.grad is not None

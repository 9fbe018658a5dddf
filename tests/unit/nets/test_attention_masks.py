"""Masks inside one sequence: they are the rules of attention patterns, the same in every backend."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from unmask.config.attention_pattern import (
    Causal,
    FactorizationOrder,
    Full,
    PrefixLM,
    RowCoordinates,
    SlidingWindow,
)
from unmask.config.network import TransformerConfig
from unmask.nets.attention.sliding_window import QUERY_BLOCK
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.encoder import TokenInputs, TransformerEncoder, init_weights
from unmask.nets.layers.attention import AttentionBackend, select_backend

SMALL = TransformerConfig(depth=2, width=32, heads=4, ffn_width=64, dropout=0.0, attention_dropout=0.0)
OTHERS = [(MaskKind.FULL, 0), (MaskKind.CAUSAL, 0), (MaskKind.PREFIX_LM, 0)]
WINDOWS = [(kind, reach) for kind in (MaskKind.SLIDING_WINDOW, MaskKind.CAUSAL_WINDOW) for reach in (0, 2, 9, 40)]
"""Itself alone, few tokens, more than the shorter sequences of a batch have, more than any has."""
BATCHES = [
    ([7, 7, 7], [3, 7, 0]),
    ([5, 1, 12, 3], [2, 1, 7, 0]),
    ([QUERY_BLOCK + 9, 4, QUERY_BLOCK], [30, 2, QUERY_BLOCK]),
]
every_batch = pytest.mark.parametrize(("lengths", "sources"), BATCHES)
every_sight = pytest.mark.parametrize(("sight", "reach"), [*OTHERS, *WINDOWS, (MaskKind.DENSE, 0)])
DENSE = (SlidingWindow(3) & PrefixLM()) | FactorizationOrder(True)
"""A rule that no kernel knows."""
narrow = pytest.mark.parametrize("sight", [MaskKind.CAUSAL, MaskKind.PREFIX_LM])


def offsets(lengths):
    return [0, *np.cumsum(lengths).tolist()]


def rule(sight, reach):
    return {
        MaskKind.FULL: Full(),
        MaskKind.CAUSAL: Causal(),
        MaskKind.PREFIX_LM: PrefixLM(),
        MaskKind.SLIDING_WINDOW: SlidingWindow(reach),
        MaskKind.CAUSAL_WINDOW: Causal() & SlidingWindow(reach),
        MaskKind.DENSE: DENSE,
    }[sight]


def row(length, source):
    """A sequence with a prefix, where every third token has a place in a factorization order."""
    return RowCoordinates.of(length, prefix=source, rank=[-1 if at % 3 else (7 * at) % 11 + 1 for at in range(length)])


def borders(lengths, sources, sight, reach=0, device="cpu"):
    prefixes = sources if sight is MaskKind.PREFIX_LM else ()
    if sight is not MaskKind.DENSE:
        return PackedSequences.of(offsets(lengths), device, sight, prefixes, reach)
    rows = [row(*pair) for pair in zip(lengths, sources, strict=True)]
    names = ("index", "document", "prefix", "rank")
    flat = RowCoordinates(*(torch.from_numpy(np.concatenate([getattr(one, name) for one in rows])) for name in names))
    return PackedSequences.of(offsets(lengths), device, sight, dense_rule=DENSE, coordinates=flat)


def network(trunk=SMALL):
    made = TransformerEncoder(trunk, 100, 2 * QUERY_BLOCK).eval()
    init_weights(made, 0.1, torch.Generator().manual_seed(0))
    return made


def tokens(lengths, sources, sight, reach=0, device="cpu"):
    ids = torch.randint(0, 100, (sum(lengths),), generator=torch.Generator().manual_seed(1))
    position = torch.cat([torch.arange(length) for length in lengths])
    around = borders(lengths, sources, sight, reach, device)
    return TokenInputs(ids.to(device), position.to(device), torch.zeros_like(ids).to(device), around)


def run(made, batch, lowering=AttentionBackend.AUTO):
    for block in made.blocks():
        block.attention.sublayer.backend = lowering
    return made(batch).last_TD


def test_every_sight_is_tried():
    assert {sight for sight, _ in OTHERS + WINDOWS} == set(MaskKind) - {MaskKind.DENSE}


@every_batch
@every_sight
def test_a_sight_is_the_rule_of_its_view(lengths, sources, sight, reach):
    made = borders(lengths, sources, sight, reach)
    seen = made.attention_mask_SLL().expand(len(lengths), made.max_seqlen, made.max_seqlen)
    for grid, length, source in zip(seen, lengths, sources, strict=True):
        allowed = rule(sight, reach).matrix(row(length, source))
        assert np.array_equal(grid[:length, :length].numpy(), allowed)
        assert not grid[:length, length:].any(), "a token reads padding"


def written_out(attention, x, batch, rules):
    """Attention by the matrices of views.py, one sequence and one head after another."""
    q, k, v = attention.qkv(x).chunk(3, dim=-1)
    rows = []
    for start, end, allowed in zip(batch[:-1], batch[1:], rules, strict=True):
        heads = zip(*(one[start:end].chunk(attention.heads, dim=-1) for one in (q, k, v)), strict=True)
        scores = [(one @ two.T / one.shape[-1] ** 0.5, three) for one, two, three in heads]
        hidden = ~torch.tensor(allowed)
        weights = [(s.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num(0.0), w) for s, w in scores]
        rows.append(torch.cat([one @ two for one, two in weights], -1))
    return attention.out(torch.cat(rows))


@every_batch
@every_sight
@pytest.mark.parametrize(
    "lowering",
    [
        AttentionBackend.REFERENCE,
        AttentionBackend.LOOP,
        AttentionBackend.SDPA,
        AttentionBackend.FLEX,
        AttentionBackend.AUTO,
    ],
)
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_every_lowering_equals_the_matrices_of_the_view(lengths, sources, sight, reach, lowering):
    attention = network().blocks()[0].attention.sublayer
    attention.backend = lowering
    x = torch.randn(sum(lengths), 32, generator=torch.Generator().manual_seed(2))
    pairs = zip(lengths, sources, strict=True)
    rules = [rule(sight, reach).matrix(row(length, source)) for length, source in pairs]
    with torch.no_grad():
        found = attention(x, borders(lengths, sources, sight, reach))
        assert torch.allclose(found, written_out(attention, x, offsets(lengths), rules), atol=1e-5)


def gradients(made, batch, lowering):
    made.zero_grad()
    run(made, batch, lowering).square().sum().backward()
    return [parameter.grad.clone() for parameter in made.parameters()]


@every_batch
@pytest.mark.parametrize(("sight", "reach"), OTHERS[1:] + WINDOWS)
@pytest.mark.parametrize("lowering", [AttentionBackend.LOOP, AttentionBackend.SDPA])
def test_gradients_equal_those_of_the_dense_reference(lengths, sources, sight, reach, lowering):
    made, batch = network(), tokens(lengths, sources, sight, reach)
    pairs = zip(gradients(made, batch, lowering), gradients(made, batch, AttentionBackend.REFERENCE), strict=True)
    assert all(torch.allclose(one, two, atol=1e-4, rtol=1e-4) for one, two in pairs)


@narrow
@pytest.mark.parametrize("training", [False, True])
def test_a_token_to_come_moves_nothing_before_it(sight, training):
    """In training too: attention dropout takes another kernel."""
    trunk = TransformerConfig(depth=2, width=32, heads=4, ffn_width=64, dropout=0.1, attention_dropout=0.1)
    made, batch = network(trunk).train(training), tokens([4, 9], [2, 5], sight)

    def states():
        torch.manual_seed(3)
        with torch.no_grad():
            return made(batch).last_TD

    for changed in range(4 + 5, 4 + 9):
        before = states()
        batch.ids_T[changed] = (batch.ids_T[changed] + 1) % 100
        after = states()
        assert torch.equal(before[:changed], after[:changed])
        assert all(not torch.equal(before[later], after[later]) for later in range(changed, 13))


def test_a_source_is_seen_by_its_whole_sequence_and_sees_itself_alone():
    made, batch = network(), tokens([4, 9], [2, 5], MaskKind.PREFIX_LM)
    with torch.no_grad():
        whole = run(made, batch)
        alone = TokenInputs(batch.ids_T[4:9], batch.position_T[4:9], batch.segment_T[4:9], PackedSequences.of([0, 5]))
        assert torch.allclose(run(made, alone), whole[4:9], atol=1e-6)
        batch.ids_T[8] = (batch.ids_T[8] + 1) % 100
        moved = run(made, batch)
    assert torch.equal(whole[:4], moved[:4])
    assert all(not torch.equal(whole[at], moved[at]) for at in range(4, 13))


def test_sources_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 sequences under a prefix mask, but 1 prefixes"):
        PackedSequences.of([0, 3, 6], "cpu", MaskKind.PREFIX_LM, [2])
    with pytest.raises(ValueError, match="but 2 prefixes"):
        PackedSequences.of([0, 3, 6], "cpu", MaskKind.CAUSAL, [2, 2])
    with pytest.raises(ValueError, match="longer than its sequence"):
        PackedSequences.of([0, 3, 6], "cpu", MaskKind.PREFIX_LM, [2, 4])


def test_a_kernel_that_cannot_say_prefix_is_not_taken():
    states = torch.zeros(1)
    assert select_backend(AttentionBackend.VARLEN, states, 0.0, MaskKind.PREFIX_LM) is AttentionBackend.SDPA
    assert select_backend(AttentionBackend.VARLEN, states, 0.0, MaskKind.CAUSAL) is AttentionBackend.VARLEN


def test_a_reach_that_says_nothing_is_refused():
    with pytest.raises(ValueError, match="a radius of 3 under a past mask"):
        PackedSequences.of([0, 3, 6], "cpu", MaskKind.CAUSAL, window=3)
    with pytest.raises(ValueError, match="a radius of -1 under a near mask"):
        PackedSequences.of([0, 3, 6], "cpu", MaskKind.SLIDING_WINDOW, window=-1)


def test_a_window_never_takes_a_grid_of_its_own_accord():
    states = torch.zeros(1)
    assert all(
        select_backend(AttentionBackend.AUTO, states, dropout, MaskKind.SLIDING_WINDOW) is AttentionBackend.LOOP
        for dropout in (0.0, 0.1)
    )
    assert select_backend(AttentionBackend.VARLEN, states, 0.0, MaskKind.SLIDING_WINDOW) is AttentionBackend.VARLEN


def test_a_window_that_reaches_both_ends_is_a_full_sight():
    seven = borders([7, 3], (), MaskKind.SLIDING_WINDOW, 6).simplified()
    assert (seven.mask_kind, seven.window) == (MaskKind.FULL, 0)
    six = borders([7, 3], (), MaskKind.SLIDING_WINDOW, 5).simplified()
    assert (six.mask_kind, six.window) == (MaskKind.SLIDING_WINDOW, 5)


def windowed(rate, reach, length, lowering=AttentionBackend.AUTO):
    """One layer of attention in training, and a step through it over one long sequence and a short one."""
    trunk = TransformerConfig(depth=1, width=32, heads=2, ffn_width=64, dropout=0.0, attention_dropout=rate)
    attention = network(trunk).train().blocks()[0].attention.sublayer
    attention.backend = lowering
    x = torch.randn(length, 32, generator=torch.Generator().manual_seed(2), requires_grad=True)

    def step():
        torch.manual_seed(3)
        attention(x, borders([length - 5, 5], (), MaskKind.SLIDING_WINDOW, reach)).square().sum().backward()

    return attention, x, step


class Sizes(TorchDispatchMode):
    """Remembers the size of the largest tensor that was made."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        found = [one.untyped_storage().nbytes() for one in tree_leaves(made) if isinstance(one, torch.Tensor)]
        self.largest = max(self.largest, *found, 0)
        return made


def largest(rate, length, lowering=AttentionBackend.AUTO):
    """Bytes of the largest tensor of a forward and backward pass."""
    _, _, step = windowed(rate, 8, length, lowering)
    with Sizes() as sizes:
        step()
    return sizes.largest


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_no_tensor_of_a_window_grows_with_the_square_of_the_length(rate):
    short, long = (largest(rate, length) for length in (1024, 2048))
    assert long < 2048**2, "as many bytes as a matrix of bools has"
    assert long / short == pytest.approx(2.0, rel=0.05)
    assert largest(rate, 2048, AttentionBackend.SDPA) >= 2048**2


@pytest.mark.parametrize("reach", [0, 2, 9, 40])
def test_gradients_in_training_equal_those_of_the_dense_reference(reach):
    """With a rate so small that nothing is dropped, though the kernel is the one of dropout."""
    trunk = TransformerConfig(depth=2, width=32, heads=4, ffn_width=64, dropout=0.0, attention_dropout=1e-9)
    made, batch = network(trunk).train(), tokens([QUERY_BLOCK + 9, 4, 20], (), MaskKind.SLIDING_WINDOW, reach)
    pairs = zip(
        gradients(made, batch, AttentionBackend.LOOP), gradients(made, batch, AttentionBackend.REFERENCE), strict=True
    )
    assert all(torch.allclose(one, two, atol=1e-4, rtol=1e-4) for one, two in pairs)


def test_dropout_in_a_window_keeps_the_mean_and_looks_no_further():
    """The mean over many draws is what attention without dropout gives, and no gradient reaches beyond the window."""
    draws, length = 2000, 12
    attention, x, _ = windowed(0.25, 2, length)
    many = borders([length] * draws, (), MaskKind.SLIDING_WINDOW, 2)
    torch.manual_seed(0)
    y = attention(x.repeat(draws, 1), many).view(draws, length, -1)
    y[:, 6].sum().backward()
    assert x.grad.abs().sum(-1).gt(0).tolist() == [4 <= place <= 8 for place in range(length)]
    with torch.no_grad():
        exact = attention.eval()(x, borders([length], (), MaskKind.SLIDING_WINDOW, 2))
        assert ((y.mean(0) - exact).abs() < 6 * y.std(0) / draws**0.5).all()
    assert (y[0] != y[1]).any()


def test_compiled_code_of_a_window_is_the_same():
    attention, x, _ = windowed(0.0, 3, QUERY_BLOCK + 7)
    around = borders([QUERY_BLOCK, 7], (), MaskKind.SLIDING_WINDOW, 3)
    with torch.no_grad():
        found = torch.compile(attention, backend="eager", fullgraph=True)(x, around)
        assert torch.allclose(found, attention(x, around), atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "lowering",
    [
        AttentionBackend.LOOP,
        AttentionBackend.SDPA,
        AttentionBackend.FLEX,
        AttentionBackend.VARLEN,
        AttentionBackend.AUTO,
    ],
)
@pytest.mark.parametrize(("sight", "reach"), [*OTHERS, *WINDOWS, (MaskKind.SLIDING_WINDOW, 119)])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_on_a_gpu_every_lowering_equals_the_dense_reference_in_bf16(lowering, sight, reach):
    lengths, sources = [5, 1, 120, 33], [2, 1, 64, 0]
    trunk = TransformerConfig(depth=2, width=128, heads=2, ffn_width=256, dropout=0.0, attention_dropout=0.0)
    made = network(trunk)
    with torch.no_grad():
        exact = run(made, tokens(lengths, sources, sight, reach), AttentionBackend.REFERENCE)
        made = made.cuda().bfloat16()
        found = run(made, tokens(lengths, sources, sight, reach, "cuda"), lowering).float().cpu()
    assert (found - exact).abs().max() < 0.08


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("lowering", [AttentionBackend.LOOP, AttentionBackend.SDPA, AttentionBackend.AUTO])
@pytest.mark.parametrize(("sight", "reach"), WINDOWS)
def test_on_a_gpu_gradients_of_a_window_equal_those_of_the_dense_reference(lowering, sight, reach):
    made = network()
    exact = gradients(made, tokens([5, 1, 120, 33], (), sight, reach), AttentionBackend.REFERENCE)
    found = gradients(made.cuda(), tokens([5, 1, 120, 33], (), sight, reach, "cuda"), lowering)
    assert all(torch.allclose(one.cpu(), two, atol=1e-3, rtol=1e-3) for one, two in zip(found, exact, strict=True))

"""What a token sees inside its sequence: the rules of views.py, the same under every lowering, and no look ahead."""

import numpy as np
import pytest
import torch

from unmask.nets.attention import Lowering, chosen
from unmask.nets.layout import Borders, Sight
from unmask.nets.transformer import Tokens, Transformer, draw_weights
from unmask.nets.trunk import Trunk
from unmask.views import Everything, Layout, Past, Prefix

SMALL = Trunk(depth=2, width=32, heads=4, inner=64, dropout=0.0, attention_dropout=0.0)
RULES = {Sight.FULL: Everything(), Sight.PAST: Past(), Sight.PREFIX: Prefix()}
BATCHES = [([7, 7, 7], [3, 7, 0]), ([5, 1, 12, 3], [2, 1, 7, 0])]
every_batch = pytest.mark.parametrize(("lengths", "sources"), BATCHES)
narrow = pytest.mark.parametrize("sight", [Sight.PAST, Sight.PREFIX])


def offsets(lengths):
    return [0, *np.cumsum(lengths).tolist()]


def borders(lengths, sources, sight, device="cpu"):
    return Borders.of(offsets(lengths), device, sight, sources if sight is Sight.PREFIX else ())


def network(trunk=SMALL):
    made = Transformer(trunk, 100, 64).eval()
    draw_weights(made, 0.1, torch.Generator().manual_seed(0))
    return made


def tokens(lengths, sources, sight, device="cpu"):
    ids = torch.randint(0, 100, (sum(lengths),), generator=torch.Generator().manual_seed(1))
    position = torch.cat([torch.arange(length) for length in lengths])
    return Tokens(
        ids.to(device), position.to(device), torch.zeros_like(ids).to(device), borders(lengths, sources, sight, device)
    )


def run(made, batch, lowering=Lowering.AUTO):
    for block in made.blocks():
        block.attend.work.lowering = lowering
    return made(batch).last_TD


@every_batch
@pytest.mark.parametrize("sight", Sight)
def test_a_sight_is_the_rule_of_its_view(lengths, sources, sight):
    made = borders(lengths, sources, sight)
    seen = made.seen_SLL().expand(len(lengths), made.longest, made.longest)
    for grid, length, source in zip(seen, lengths, sources, strict=True):
        rule = RULES[sight].allows(Layout.of(length, prefix=source))
        assert np.array_equal(grid[:length, :length].numpy(), rule)
        assert not grid[:length, length:].any(), "a token reads padding"


def written_out(attention, x, batch, rules):
    """Attention by the matrices of views.py, one sequence and one head after another."""
    q, k, v = attention.qkv(x).chunk(3, dim=-1)
    rows = []
    for start, end, rule in zip(batch[:-1], batch[1:], rules, strict=True):
        heads = zip(*(one[start:end].chunk(attention.heads, dim=-1) for one in (q, k, v)), strict=True)
        scores = [(one @ two.T / one.shape[-1] ** 0.5, three) for one, two, three in heads]
        rows.append(torch.cat([s.masked_fill(~torch.tensor(rule), -torch.inf).softmax(-1) @ w for s, w in scores], -1))
    return attention.out(torch.cat(rows))


@every_batch
@pytest.mark.parametrize("sight", Sight)
@pytest.mark.parametrize("lowering", [Lowering.DENSE, Lowering.EACH, Lowering.SDPA, Lowering.FLEX, Lowering.AUTO])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_every_lowering_equals_the_matrices_of_the_view(lengths, sources, sight, lowering):
    attention = network().blocks()[0].attend.work
    attention.lowering = lowering
    x = torch.randn(sum(lengths), 32, generator=torch.Generator().manual_seed(2))
    rules = [RULES[sight].allows(Layout.of(*pair[:1], prefix=pair[1])) for pair in zip(lengths, sources, strict=True)]
    with torch.no_grad():
        found = attention(x, borders(lengths, sources, sight))
        assert torch.allclose(found, written_out(attention, x, offsets(lengths), rules), atol=1e-5)


def gradients(made, batch, lowering):
    made.zero_grad()
    run(made, batch, lowering).square().sum().backward()
    return [parameter.grad.clone() for parameter in made.parameters()]


@every_batch
@narrow
@pytest.mark.parametrize("lowering", [Lowering.EACH, Lowering.SDPA])
def test_gradients_equal_those_of_the_dense_reference(lengths, sources, sight, lowering):
    made, batch = network(), tokens(lengths, sources, sight)
    pairs = zip(gradients(made, batch, lowering), gradients(made, batch, Lowering.DENSE), strict=True)
    assert all(torch.allclose(one, two, atol=1e-4, rtol=1e-4) for one, two in pairs)


@narrow
@pytest.mark.parametrize("training", [False, True])
def test_a_token_to_come_moves_nothing_before_it(sight, training):
    """In training too: attention dropout takes another kernel."""
    trunk = Trunk(depth=2, width=32, heads=4, inner=64, dropout=0.1, attention_dropout=0.1)
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
    made, batch = network(), tokens([4, 9], [2, 5], Sight.PREFIX)
    with torch.no_grad():
        whole = run(made, batch)
        alone = Tokens(batch.ids_T[4:9], batch.position_T[4:9], batch.segment_T[4:9], Borders.of([0, 5]))
        assert torch.allclose(run(made, alone), whole[4:9], atol=1e-6)
        batch.ids_T[8] = (batch.ids_T[8] + 1) % 100
        moved = run(made, batch)
    assert torch.equal(whole[:4], moved[:4])
    assert all(not torch.equal(whole[at], moved[at]) for at in range(4, 13))


def test_sources_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 sequences under a prefix sight, but 1 sources"):
        Borders.of([0, 3, 6], "cpu", Sight.PREFIX, [2])
    with pytest.raises(ValueError, match="but 2 sources"):
        Borders.of([0, 3, 6], "cpu", Sight.PAST, [2, 2])
    with pytest.raises(ValueError, match="longer than its sequence"):
        Borders.of([0, 3, 6], "cpu", Sight.PREFIX, [2, 4])


def test_a_kernel_that_cannot_say_prefix_is_not_taken():
    states = torch.zeros(1)
    assert chosen(Lowering.VARLEN, states, 0.0, Sight.PREFIX) is Lowering.SDPA
    assert chosen(Lowering.VARLEN, states, 0.0, Sight.PAST) is Lowering.VARLEN


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("lowering", [Lowering.SDPA, Lowering.FLEX, Lowering.VARLEN, Lowering.AUTO])
@pytest.mark.parametrize("sight", Sight)
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_on_a_gpu_every_lowering_equals_the_dense_reference_in_bf16(lowering, sight):
    lengths, sources = [5, 1, 120, 33], [2, 1, 64, 0]
    trunk = Trunk(depth=2, width=128, heads=2, inner=256, dropout=0.0, attention_dropout=0.0)
    made = Transformer(trunk, 100, 128).eval()
    draw_weights(made, 0.1, torch.Generator().manual_seed(0))
    with torch.no_grad():
        exact = run(made, tokens(lengths, sources, sight), Lowering.DENSE)
        made = made.cuda().bfloat16()
        found = run(made, tokens(lengths, sources, sight, "cuda"), lowering).float().cpu()
    assert (found - exact).abs().max() < 0.08

"""Random numbers of a pass: drawn at once, each handed out once, and enough of them for every part that asks."""

from dataclasses import replace

import interpreted
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from unmask.config.network import Sharing, TransformerConfig
from unmask.nets.attention.backends import AttentionBackend
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs, TransformerEncoder
from unmask.nets.kernels.dispatch import use_kernels
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, PooledSeeds, attention_seed_count

DEVICE = torch.device(interpreted.DEVICE)
TRUNK = TransformerConfig(depth=3, width=32, heads=2, ffn_width=32, dropout=0.3, attention_dropout=0.3)


class Watch(TorchDispatchMode):
    """How many numbers each draw had."""

    def __init__(self):
        super().__init__()
        self.draws = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        found = operator(*args, **(kwargs or {}))
        if operator is torch.ops.aten.random_.default:
            self.draws.append(found.numel())
        return found


def network(trunk=TRUNK, on=True):
    torch.manual_seed(1)
    made = TransformerEncoder(trunk, 50, 16).to(DEVICE).train()
    use_kernels(made, on)
    return made


def tokens(lengths=(9, 0, 7)):
    ids = torch.arange(sum(lengths), device=DEVICE) % 9
    ends = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    return TokenInputs(ids, ids, torch.zeros_like(ids), PackedSequences.of(ends, DEVICE))


@pytest.fixture(autouse=True)
def _our_attention(monkeypatch):
    """On a CPU, too, where another lowering would be taken with dropout."""
    monkeypatch.setattr("unmask.nets.attention.backends._fastest", lambda *_: AttentionBackend.TRITON)


def test_numbers_are_handed_out_once_and_at_round_addresses():
    beside = torch.zeros(1, device=DEVICE)
    torch.manual_seed(2)
    draws = PooledSeeds.of([1, 6, 1, 9], DEVICE)
    first = draws.remaining.data_ptr()
    taken = [draws.take(count, beside) for count in (1, 6, 1, 9)]
    begins = [(one.data_ptr() - first) // 4 for one in taken]
    assert begins == [0, 4, 12, 16]
    torch.manual_seed(2)
    everything = PER_CALL_SEEDS.take(28, beside)
    assert all(torch.equal(one, everything[at : at + len(one)]) for one, at in zip(taken, begins, strict=True))
    assert everything.dtype is torch.int32
    assert everything.min() >= 0


def test_more_than_was_announced_is_refused():
    draws = PooledSeeds.of([3], DEVICE)
    draws.take(3, draws.remaining)
    with pytest.raises(AssertionError, match="more random numbers"):
        draws.take(1, draws.remaining)


@pytest.mark.parametrize("asked", [(), (0, 3, 12)], ids=["all", "some"])
def test_a_pass_draws_once_and_not_a_number_too_many(asked):
    places = [torch.tensor(asked, device=DEVICE)] if asked else []
    with Watch() as seen:
        network()(tokens(), places)
    a_block = -(-attention_seed_count(2, 16, 16) // 4) * 4 + 4 + 4
    assert seen.draws == [4 + TRUNK.depth * a_block]


def test_who_does_not_ask_is_not_drawn_for():
    with Watch() as seen:
        network(replace(TRUNK, attention_dropout=0.0))(tokens())
        network(replace(TRUNK, dropout=0.0, attention_dropout=0.0))(tokens())
        network().eval()(tokens())
    assert seen.draws == [4 + TRUNK.depth * 8]


def test_layers_that_are_one_layer_drop_otherwise_each_time():
    """What is dropped is so large that states are its mask, normed: the same in every layer if draws were the same."""
    trunk = replace(TRUNK, sharing=Sharing.ALL, dropout=0.5, attention_dropout=0.0)
    made = network(trunk)
    with torch.no_grad():
        for parameter in made.layers.parameters():
            parameter.zero_()
        made.layers[0].attention.norm.weight.fill_(1.0)
        made.layers[0].ffn.norm.weight.fill_(1.0)
        made.layers[0].ffn.sublayer.down.bias.fill_(1e4)
        _, *layers = made(tokens()).layers
    assert len(layers) == 3
    assert not torch.allclose(layers[1], layers[2], atol=1e-2)


def test_the_seed_decides_about_a_pass():
    def run(seed):
        made = network()
        torch.manual_seed(seed)
        return made(tokens()).last_TD

    assert torch.equal(run(3), run(3))
    assert not torch.equal(run(3), run(4))

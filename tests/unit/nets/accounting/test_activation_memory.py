"""What a network holds of a token: the arithmetic against what autograd keeps."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from unmask.config.network import Activation, Norm, TransformerConfig
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.layers.block import build_blocks


def kept(trunk, tokens=96):
    """Bytes that are kept of a token, each storage once, without parameters."""
    blocks = torch.nn.ModuleList(build_blocks(trunk))
    weights = {parameter.data_ptr() for parameter in blocks.parameters()}
    found = {}

    def keep(tensor):
        found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        held.append(tensor)  # or its storage could be another's a moment later
        return tensor

    held = []
    x = torch.randn(tokens, trunk.width, requires_grad=True)
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        for block in blocks:
            x = block(x, PackedSequences.of([0, tokens], "cpu"))
    return sum(size for at, size in found.items() if at not in weights) / tokens


@pytest.mark.parametrize(("width", "ffn_width"), [(64, 256), (32, 48)])
def test_a_block_keeps_what_the_arithmetic_says(width, ffn_width):
    """In float32 without dropout plain code keeps what kernels do, in twice as many bytes, and a token's own sums."""
    short, long = (
        TransformerConfig(depth=d, width=width, heads=2, ffn_width=ffn_width, dropout=0.0, attention_dropout=0.0)
        for d in (1, 3)
    )
    expected = 2 * (long.activation_bytes(fused=True) - short.activation_bytes(fused=True))
    assert expected <= kept(long) - kept(short) <= 1.05 * expected


@pytest.mark.parametrize(
    "unlike",
    [
        {},
        {"activation": Activation.GEGLU},
        {"norm": Norm.PRE},
        {"norm": Norm.PRE, "activation": Activation.GEGLU},
        {"dropout": 0.1},
        {"dropout": 0.1, "norm": Norm.PRE, "activation": Activation.GEGLU},
    ],
)
def test_plain_code_under_autocast_keeps_no_more_than_is_reckoned(unlike):
    usual = {"width": 64, "heads": 2, "ffn_width": 256, "dropout": 0.0, "attention_dropout": 0.0}
    short, long = (TransformerConfig(**{**usual, **unlike, "depth": depth}) for depth in (1, 3))
    with torch.autocast("cpu", torch.bfloat16):
        found = kept(long) - kept(short)
    expected = long.activation_bytes(fused=False) - short.activation_bytes(fused=False)
    assert 0.6 * expected <= found <= expected


def test_only_kernels_hold_less():
    fused = {(norm, bend): _of(norm, bend).activation_bytes(fused=True) for norm in Norm for bend in Activation}
    lean = {which for which, size in fused.items() if size < _of(*which).activation_bytes(fused=False)}
    assert lean == {(Norm.POST, Activation.GELU), (Norm.POST, Activation.GELU_TANH)}


def _of(norm, activation):
    return TransformerConfig(depth=2, width=64, heads=2, ffn_width=256, norm=norm, activation=activation)

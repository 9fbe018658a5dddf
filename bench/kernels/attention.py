"""Every way to compute attention, forward and backward, on the shapes that pre-training has: a table.

    python -m bench.kernels.attention [--data FOLDER] [--lengths 128,256,512,1024] [--tokens 65536] [--dropout 0.1]
    python -m bench.kernels.attention --sweep [--dropout 0]                                    (tiles of our own kernels)
    python -m bench.kernels.attention --device cpu --tokens 2048 --lengths 128 --heads 2        (a check)

Three kinds of rows: all of one length (`full`), nine tenths of that length on average (`ragged`), and, with --data,
rows of real documents that do not see each other (`documents`). Each way is first held against the written-out one in
float32, unless it drops; TFLOP/s count what the rows need, not what padding costs, and the gradient of the output is
given, not computed. `cudnn varlen` calls torch's operator by its name; `kernel` is our own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from timeit import timeit
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench.speed.common.timing import settle
from unmask.config.attention_pattern import WITHIN_DOCUMENT
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.row_plan import DynamicMasking
from unmask.members import member
from unmask.nets.batch.batch import collate
from unmask.nets.batch.packed_sequences import PackedSequences, pad, unpad
from unmask.nets.layers.attention import AttentionBackend, attention
from unmask.tasks.batches import TaskBatches

Way = Callable[[Tensor, PackedSequences], Tensor]
REPEATS = 20
RESTS = 60_000_000
"""Ticks of a GPU's clock, some 30 ms: longer than the host takes to ask for all repeats."""


def main() -> None:
    wish = _wishes()
    device = torch.device(wish.device)
    if wish.sweep:
        from bench.kernels.attention_tiles import sweep

        sweep(wish, device, partial(seconds, device=device, repeats=REPEATS))
        return
    chip = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{chip}, torch {torch.__version__}; {wish.tokens:,} tokens, {wish.heads} heads of {wish.head}\n")
    print(f"{'rows':22}{'way':18}{'ms':>9}{'TFLOP/s':>10}{'error':>10}")
    shapes = list(_shapes(wish, device))
    for name, way in _ways(device, wish.dropout).items():  # cuDNN last: what it breaks stays broken
        for kind, borders in shapes:
            print(f"{kind:22}{name:18}{_line(way, borders, wish, device, 'drop' in name)}", flush=True)


def _ways(device: torch.device, rate: float) -> dict[str, Way]:
    """By name; one that drops says so."""
    ways: dict[str, Way] = {
        "dense": partial(attention, AttentionBackend.REFERENCE),
        "sdpa": partial(attention, AttentionBackend.SDPA),
    }
    if device.type != "cuda":
        return ways
    if find_spec("triton"):
        from unmask.nets.kernels.attention import triton_attention

        ways |= {"kernel": triton_attention, "kernel drop": partial(triton_attention, dropout=rate)}
    ways |= {
        "sdpa drop": partial(attention, AttentionBackend.SDPA, dropout=rate),
        "varlen": partial(attention, AttentionBackend.VARLEN),
    }
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
        ways[f"sdpa {name}"] = partial(_by_backend, backend, 0.0)
        ways[f"sdpa {name} drop"] = partial(_by_backend, backend, rate)
    return ways | {"cudnn varlen": _cudnn}


def _by_backend(backend: SDPBackend, rate: float, qkv_T3HK: Tensor, borders: PackedSequences) -> Tensor:
    with sdpa_kernel(backend):
        q, k, v = pad(qkv_T3HK, borders).permute(2, 0, 3, 1, 4).unbind(0)
        mask = None if borders.is_uniform else borders.attention_mask_SLL()[:, None]
        return unpad(F.scaled_dot_product_attention(q, k, v, mask, rate).transpose(1, 2), borders)


class _Cudnn(torch.autograd.Function):
    """torch's operator for sequences of many lengths by cuDNN, and its backward."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, ends: Tensor, longest: int) -> Tensor:  # noqa: ANN401
        said = torch.ops.aten._cudnn_attention_forward(q, k, v, None, ends, ends, longest, longest, True)
        ctx.save_for_backward(q, k, v, said[0], said[1], said[6], said[7], ends)
        ctx.longest = longest
        out: Tensor = said[0]
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        q, k, v, out, lse, seed, offset, ends = ctx.saved_tensors
        sizes = (ends, ends, ctx.longest, ctx.longest, 0.0, False)
        dq, dk, dv = torch.ops.aten._cudnn_attention_backward(
            grads[0].contiguous(), q, k, v, out, lse, seed, offset, None, *sizes
        )
        return dq, dk, dv, None, None


def _cudnn(qkv_T3HK: Tensor, borders: PackedSequences) -> Tensor:
    q_THK, k_THK, v_THK = (part.contiguous() for part in qkv_T3HK.unbind(1))
    out: Tensor = _Cudnn.apply(q_THK, k_THK, v_THK, borders.cu_seqlens_S1, borders.max_seqlen)  # type: ignore[no-untyped-call]
    return out


def _line(way: Way, borders: PackedSequences, wish: argparse.Namespace, device: torch.device, drops: bool) -> str:
    """Milliseconds, TFLOP/s and the largest error of outputs and gradients; or why it cannot be done."""
    torch.manual_seed(0)
    total = int(borders.cu_seqlens_S1[-1])
    qkv = torch.randn(total, 3, wish.heads, wish.head, device=device)
    try:
        error = "-" if drops else f"{_error(way, qkv, borders):.4f}"
        took = _timed(way, qkv, borders, device)
    except (RuntimeError, IndexError) as reason:  # torch is not always sure which of them it is
        return f"  cannot: {str(reason).splitlines()[0][:30]}"
    pairs = float((borders.cu_seqlens_S1.diff().double() ** 2).sum())
    flops = 3.5 * 4 * pairs * wish.heads * wish.head
    return f"{1000 * took:9.2f}{flops / took / 1e12:10.1f}{error:>10}"


def _error(way: Way, qkv: Tensor, borders: PackedSequences) -> float:
    """Against dense float32, for the first sequences (a grid of all of them may be too large)."""
    few = PackedSequences.of(borders.cu_seqlens_S1[: min(borders.num_sequences, 16) + 1].cpu(), qkv.device)
    part = qkv[: int(few.cu_seqlens_S1[-1])]
    (out, grad), (ours, mine) = (
        _both(partial(attention, AttentionBackend.REFERENCE), part, few),
        _both(way, part.bfloat16(), few),
    )
    return max(_apart(out, ours), _apart(grad, mine))


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other.float()).abs().max() / one.abs().max())


def _both(way: Way, qkv: Tensor, borders: PackedSequences) -> tuple[Tensor, Tensor]:
    leaf = qkv.detach().requires_grad_()
    out = way(leaf, borders)
    (grad,) = torch.autograd.grad(out.float().square().sum(), leaf)
    return out.detach(), grad


def _timed(way: Way, qkv: Tensor, borders: PackedSequences, device: torch.device) -> float:
    leaf = qkv.bfloat16().requires_grad_()
    given = torch.randn_like(leaf[:, 0], memory_format=torch.contiguous_format)

    def turn() -> None:
        torch.autograd.grad(way(leaf, borders), leaf, given)

    return seconds(turn, device, REPEATS if device.type == "cuda" else 1)


def seconds(turn: Callable[[], object], device: torch.device, repeats: int) -> float:
    """What one turn takes, after some that warm up. A GPU rests first, so that no kernel waits for the host."""
    for _ in range(3):
        turn()
    settle(device)
    if device.type != "cuda":
        return timeit(turn, number=repeats) / repeats
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(RESTS)
    first.record()
    timeit(turn, number=repeats)
    last.record()
    settle(device)
    return first.elapsed_time(last) / repeats / 1000


def _shapes(wish: argparse.Namespace, device: torch.device) -> Iterator[tuple[str, PackedSequences]]:
    rng = np.random.default_rng(0)
    for length in map(int, wish.lengths.split(",")):
        count = wish.tokens // length
        yield f"full {length}", PackedSequences.of(np.arange(count + 1) * length, device)
        ragged = rng.integers(int(0.8 * length), length + 1, count)
        yield f"ragged {length}", PackedSequences.of(np.concatenate([[0], np.cumsum(ragged)]), device)
        if wish.data:
            task = member("roberta").stages[0].tasks[0]
            feed = TaskBatches.for_task(task, Corpus.open(wish.data), length, DynamicMasking(), 0)
            yield f"documents {length}", collate(feed(0, count), device, attention=WITHIN_DOCUMENT).tokens.sequences


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", type=Path, help="a prepared folder, for rows of real documents")
    parser.add_argument("--tokens", type=int, default=65_536)
    parser.add_argument("--lengths", default="128,256,512,1024")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--head", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--sweep", action="store_true", help="time tiles of our own kernels")
    return parser.parse_args()


if __name__ == "__main__":
    main()

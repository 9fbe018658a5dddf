"""Every way to compute attention, forward and backward, on the shapes that pre-training has: a table.

    python bench/attention.py [--data FOLDER] [--lengths 128,512] [--tokens 65536]
    python bench/attention.py --device cpu --tokens 2048 --lengths 128 --heads 2        (a check)

Three kinds of rows: all of one length (`full`), nine tenths of that length on average (`ragged`), and, with --data,
rows of real documents that do not see each other (`documents`). Each way is first held against the written-out one in
float32; TFLOP/s count what the rows need, not what padding costs. `cudnn varlen` calls torch's operator by its name.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from timing import settle
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from unmask.examples.visits import EveryVisit
from unmask.family import member
from unmask.feed import Feed
from unmask.nets.attention import Lowering, attend
from unmask.nets.batch import collate
from unmask.nets.layout import Borders, from_grid, to_grid
from unmask.shards.corpus import Corpus

Way = Callable[[Tensor, Borders], Tensor]
REPEATS = 20


def main() -> None:
    wish = _wishes()
    device = torch.device(wish.device)
    chip = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{chip}, torch {torch.__version__}; {wish.tokens:,} tokens, {wish.heads} heads of {wish.head}\n")
    print(f"{'rows':22}{'way':18}{'ms':>9}{'TFLOP/s':>10}{'error':>10}")
    shapes = list(_shapes(wish, device))
    for name, way in _ways(device).items():  # cuDNN last: what it breaks stays broken
        for kind, borders in shapes:
            print(f"{kind:22}{name:18}{_line(way, borders, wish, device)}", flush=True)


def _ways(device: torch.device) -> dict[str, Way]:
    ways: dict[str, Way] = {"dense": partial(attend, Lowering.DENSE), "sdpa": partial(attend, Lowering.SDPA)}
    if device.type == "cuda":
        backends = {"sdpa flash": SDPBackend.FLASH_ATTENTION, "sdpa cudnn": SDPBackend.CUDNN_ATTENTION}
        ways |= {name: partial(_by_backend, backend) for name, backend in backends.items()}
        ways |= {"varlen": partial(attend, Lowering.VARLEN), "cudnn varlen": _cudnn}
    return ways


def _by_backend(backend: SDPBackend, qkv_T3HK: Tensor, borders: Borders) -> Tensor:
    with sdpa_kernel(backend):
        q, k, v = to_grid(qkv_T3HK, borders).permute(2, 0, 3, 1, 4).unbind(0)
        mask = None if borders.equal else borders.seen_SLL()[:, None]
        return from_grid(F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2), borders)


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


def _cudnn(qkv_T3HK: Tensor, borders: Borders) -> Tensor:
    q_THK, k_THK, v_THK = (part.contiguous() for part in qkv_T3HK.unbind(1))
    out: Tensor = _Cudnn.apply(q_THK, k_THK, v_THK, borders.offsets_S1, borders.longest)  # type: ignore[no-untyped-call]
    return out


def _line(way: Way, borders: Borders, wish: argparse.Namespace, device: torch.device) -> str:
    """Milliseconds, TFLOP/s and the largest error of outputs and gradients; or why it cannot be done."""
    torch.manual_seed(0)
    total = int(borders.offsets_S1[-1])
    qkv = torch.randn(total, 3, wish.heads, wish.head, device=device)
    try:
        error = _error(way, qkv, borders)
        seconds = _timed(way, qkv, borders, device)
    except (RuntimeError, IndexError) as reason:  # torch is not always sure which of them it is
        return f"  cannot: {str(reason).splitlines()[0][:60]}"
    pairs = float((borders.offsets_S1.diff().double() ** 2).sum())
    flops = 3.5 * 4 * pairs * wish.heads * wish.head
    return f"{1000 * seconds:9.2f}{flops / seconds / 1e12:10.1f}{error:10.4f}"


def _error(way: Way, qkv: Tensor, borders: Borders) -> float:
    """Against dense float32, for the first sequences (a grid of all of them may be too large)."""
    few = Borders.of(borders.offsets_S1[: min(borders.count, 16) + 1].cpu(), qkv.device)
    part = qkv[: int(few.offsets_S1[-1])]
    (out, grad), (ours, mine) = _both(partial(attend, Lowering.DENSE), part, few), _both(way, part.bfloat16(), few)
    return max(_apart(out, ours), _apart(grad, mine))


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other.float()).abs().max() / one.abs().max())


def _both(way: Way, qkv: Tensor, borders: Borders) -> tuple[Tensor, Tensor]:
    leaf = qkv.detach().requires_grad_()
    out = way(leaf, borders)
    (grad,) = torch.autograd.grad(out.float().square().sum(), leaf)
    return out.detach(), grad


def _timed(way: Way, qkv: Tensor, borders: Borders, device: torch.device) -> float:
    half = qkv.bfloat16()
    repeats = REPEATS if device.type == "cuda" else 1
    for _ in range(2):
        _both(way, half, borders)
    settle(device)
    began = time.perf_counter()
    for _ in range(repeats):
        _both(way, half, borders)
    settle(device)
    return (time.perf_counter() - began) / repeats


def _shapes(wish: argparse.Namespace, device: torch.device) -> Iterator[tuple[str, Borders]]:
    rng = np.random.default_rng(0)
    for length in map(int, wish.lengths.split(",")):
        count = wish.tokens // length
        yield f"full {length}", Borders.of(np.arange(count + 1) * length, device)
        ragged = rng.integers(int(0.8 * length), length + 1, count)
        yield f"ragged {length}", Borders.of(np.concatenate([[0], np.cumsum(ragged)]), device)
        if wish.data:
            task = member("roberta").stages[0].tasks[0]
            feed = Feed.plan_for(task, Corpus.open(wish.data), length, EveryVisit(), 0)
            yield f"documents {length}", collate(feed(0, count), device, apart=True).tokens.borders


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", type=Path, help="a prepared folder, for rows of real documents")
    parser.add_argument("--tokens", type=int, default=65_536)
    parser.add_argument("--lengths", default="128,512")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--head", type=int, default=64)
    return parser.parse_args()


if __name__ == "__main__":
    main()

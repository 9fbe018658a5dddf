"""What a step costs as sequences get longer, under full attention and inside a window, and as networks get wider.

    python -m bench.speed.long
    python -m bench.speed.long --lengths 128,512,2048,8192 --width 128 --layers 2 --tokens 8192

What arrives: shapes. Every step has equally many tokens, in sequences of one length, of random ids: only time and
memory are measured. What leaves: two tables, against length and against width: tokens a second and memory of a forward
and backward pass of an encoder without a head; then the laws by which they grow, in sentences.
What never happens here: a law without its arithmetic. The exponent is fitted by least squares to the logarithms of time
per token and of length (0: the whole is linear in its length; 1: quadratic), over those lengths that a window does not
cover, and stands beside the exponent of the floating point operations that the same lengths need.

On a GPU networks run in bfloat16 (autocast), and memory is the most that tensors took at once. On a CPU they run in
float32, and memory is what the forward pass leaves for the backward pass. Fused attention keeps no scores, so that
memory grows linearly under both sights; with `--dropout` on a CPU they are written out. Times are the best of some
rounds, in which all sides take turns: what others do on the machine makes a step slower, but never faster. On a CPU
that is full, `--threads 1` takes the processor time of one thread, which is steady.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from bench.speed.common.timing import clean, gib, settle
from unmask.config.network import Positions, TransformerConfig
from unmask.nets.accounting.flops import STEP, encoder_cost
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.encoder import TokenInputs, TransformerEncoder, init_weights

HEAD, VOCABULARY = 64, 1000
LINEAR = 0.15
"""Up to this exponent of time per token the whole counts as linear in the length."""
APART = 0.25
"""So far may the exponent of full attention lie below that of its operations, or above 1: kernels differ in speed."""


@dataclass(frozen=True)
class Side:
    """One network under one sight, at one length."""

    sight: MaskKind
    reach: int
    length: int
    width: int

    @property
    def name(self) -> str:
        """How it is called in the table."""
        return f"window {self.reach}" if self.sight is MaskKind.SLIDING_WINDOW else "full"

    @property
    def seen(self) -> int:
        """How many tokens a token sees, at most."""
        return min(self.length, 2 * self.reach + 1) if self.sight is MaskKind.SLIDING_WINDOW else self.length


@dataclass(frozen=True)
class Found:
    """What was measured of one side."""

    side: Side
    tokens: int
    seconds: float
    gib: float
    operations: float
    """Of the step, counted."""

    @property
    def each(self) -> float:
        """Seconds a token."""
        return self.seconds / self.tokens

    def line(self) -> str:
        """One line of the table."""
        side, rate = self.side, self.operations / self.seconds / 1e12
        return (
            f"{side.name:12} {side.length:>7,} {side.width:>6,} {1 / self.each:>12,.0f} {1e6 * self.each:>10.2f} "
            f"{self.gib:>8.3f} {rate:>9.3f}"
        )


class Bench:
    """Networks on a device, and steps through them."""

    def __init__(self, wish: argparse.Namespace) -> None:
        self.layers, self.dropout, self.rounds = wish.layers, wish.dropout, wish.rounds
        self.device = torch.device(wish.device)
        self._now = process_time if self.device.type == "cpu" and torch.get_num_threads() == 1 else perf_counter

    def measure(self, sides: Sequence[Side], tokens: int) -> list[Found]:
        """Every side in turn, the best of all rounds. A GPU is warmed up for each; a CPU once."""
        self.step(sides[0], tokens)
        best = dict.fromkeys(sides, float("inf"))
        memory: dict[Side, float] = {}
        for number in range(self.rounds + (self.device.type == "cuda")):
            for side in sides:
                clean(self.device)
                seconds, memory[side] = self.step(side, tokens)
                best[side] = min(best[side], seconds) if number or self.device.type == "cpu" else best[side]
        return [Found(side, tokens, best[side], memory[side], self._operations(side, tokens)) for side in sides]

    def step(self, side: Side, tokens: int) -> tuple[float, float]:
        """Forward and backward: seconds, and GiB."""
        net, batch = self._network(side.width), _batch(side, tokens, self.device)
        net.zero_grad()
        pull_D = torch.randn(side.width, generator=torch.Generator().manual_seed(2)).to(self.device)
        saved = Saved(net)
        settle(self.device)
        began = self._now()
        with self._precision(), saved.watching(self.device):
            loss = (net(batch).last_TD.float() @ pull_D).mean()
        loss.backward()
        settle(self.device)
        return self._now() - began, gib(self.device) or saved.total / 2**30

    def _trunk(self, width: int) -> TransformerConfig:
        return TransformerConfig(
            depth=self.layers,
            width=width,
            heads=max(width // HEAD, 1),
            ffn_width=4 * width,
            positions=Positions.SINUSOIDAL,  # so that a longer sequence needs no larger table
            dropout=self.dropout,
            attention_dropout=self.dropout,
        )

    @lru_cache(maxsize=1)  # noqa: B019  (there is one bench); memory is that of one network
    def _network(self, width: int) -> TransformerEncoder:
        net = TransformerEncoder(self._trunk(width), VOCABULARY, 1)
        init_weights(net, 0.02, torch.Generator().manual_seed(1))
        return net.to(self.device).train()

    def _precision(self) -> AbstractContextManager[object]:
        return torch.autocast("cuda", torch.bfloat16) if self.device.type == "cuda" else nullcontext()

    def _operations(self, side: Side, tokens: int) -> float:
        return STEP * encoder_cost(self._trunk(side.width)).forward(tokens, tokens * side.seen)

    def even_at(self, width: int) -> float:
        """The number of tokens seen at which attention needs as many operations as everything else."""
        cost = encoder_cost(self._trunk(width))
        return cost.per_token / cost.per_pair


class Saved:
    """Counts the bytes that a forward pass leaves for its backward pass, each storage once, without the weights."""

    def __init__(self, net: TransformerEncoder) -> None:
        self._known = {parameter.untyped_storage().data_ptr() for parameter in net.parameters()}
        self.total = 0

    def watching(self, device: torch.device) -> AbstractContextManager[object]:
        """While a forward pass runs on a CPU; a GPU knows by itself what it holds."""
        return saved_tensors_hooks(self._pack, lambda tensor: tensor) if device.type == "cpu" else nullcontext()

    def _pack(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._known:
            self._known.add(storage.data_ptr())
            self.total += storage.nbytes()
        return tensor


def _batch(side: Side, tokens: int, device: torch.device) -> TokenInputs:
    """Sequences of one length, so many that they have all these tokens."""
    ids = torch.randint(0, VOCABULARY, (tokens,), generator=torch.Generator().manual_seed(1)).to(device)
    offsets = list(range(0, tokens + 1, side.length))
    borders = PackedSequences.of(offsets, device, side.sight, window=side.reach)
    return TokenInputs(ids, torch.arange(tokens, device=device) % side.length, torch.zeros_like(ids), borders)


def exponent(over: Sequence[float], values: Sequence[float]) -> float:
    """The e of values = c * over^e, by least squares between logarithms."""
    return float(np.polyfit(np.log(over), np.log(values), 1)[0])


def lines_of(found: Sequence[Found], device: torch.device) -> Iterator[str]:
    """The table."""
    memory = "GiB peak" if device.type == "cuda" else "GiB kept"
    head = f"{'attention':12} {'length':>7} {'width':>6} {'tokens/s':>12} {'us/token':>10} {memory:>8} {'TFLOP/s':>9}"
    yield from (head, *(one.line() for one in found))


def length_laws(found: Sequence[Found], even_at: float) -> Iterator[str]:
    """How each attention grows with the length, in sentences."""
    for name in dict.fromkeys(one.side.name for one in found):
        some = [one for one in found if one.side.name == name and one.side.length > 2 * one.side.reach]
        if len(some) < 2:
            yield f"{name}: fewer than two lengths are longer than the window, so there is no law."
            continue
        yield from _law(name, some if some[0].side.sight is MaskKind.SLIDING_WINDOW else some[-2:], some)
    yield (
        f"At this width attention needs as many operations as all the rest when a token sees {even_at:,.0f} others; "
        "much shorter sequences cost about the same per token under either sight."
    )


def _law(name: str, judged: Sequence[Found], known: Sequence[Found]) -> Iterator[str]:
    """A window is judged over all its lengths, full attention at the longest two, where it weighs most."""
    lengths = [float(one.side.length) for one in judged]
    time = exponent(lengths, [one.each for one in judged])
    counted = exponent(lengths, [one.operations for one in judged])
    memory = exponent(lengths, [one.gib for one in judged])
    every = exponent([float(one.side.length) for one in known], [one.each for one in known])
    yield (
        f"{name}: time per token grows as length^{time:z.2f} from {lengths[0]:,.0f} to {lengths[-1]:,.0f} tokens "
        f"(operations: {counted:z.2f}; memory: {memory:z.2f}; over all its lengths, time: {every:z.2f})."
    )
    if judged[0].side.sight is MaskKind.SLIDING_WINDOW:
        yield f"  The whole is {'' if abs(time) <= LINEAR else 'NOT '}linear in the length (bound {LINEAR} on 0)."
    else:
        holds = counted - APART <= time <= 1 + APART
        yield (
            f"  The whole grows {'' if holds else 'NOT '}as something linear and something quadratic do: 1 would be "
            f"attention alone, by operations it is {counted:.2f} (bound: {APART} below that, or above 1)."
        )


def width_laws(found: Sequence[Found]) -> Iterator[str]:
    """How each attention grows with the width."""
    for name in dict.fromkeys(one.side.name for one in found):
        some = [one for one in found if one.side.name == name]
        if len(some) > 1:
            widths = [float(one.side.width) for one in some]
            time, work = (exponent(widths, numbers) for numbers in _both(some))
            yield f"{name}: time per token grows as width^{time:.2f} (operations: {work:.2f})."


def _both(found: Sequence[Found]) -> tuple[list[float], list[float]]:
    return [one.each for one in found], [one.operations for one in found]


def main() -> None:
    wish = _wishes()
    torch.set_num_threads(wish.threads)
    bench = Bench(wish)
    device = bench.device
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, threads: {torch.get_num_threads()}"
    print(f"{name}, torch {torch.__version__}, {wish.layers} layers, dropout {wish.dropout:g}, best of {wish.rounds}")
    sights = [(MaskKind.FULL, 0), *((MaskKind.SLIDING_WINDOW, reach) for reach in wish.reaches)]
    print(f"\nagainst length: {wish.tokens:,} tokens in a step")
    long = bench.measure([Side(*sight, length, wish.width) for sight in sights for length in wish.lengths], wish.tokens)
    print("\n".join([*lines_of(long, device), *length_laws(long, bench.even_at(wish.width))]))
    print(f"\nagainst width: {wish.wide_tokens:,} tokens in a step")
    sides = [Side(*sight, wish.length, width) for sight in sights[:2] for width in wish.widths]
    wide = bench.measure(sides, wish.wide_tokens)
    print("\n".join([*lines_of(wide, device), *width_laws(wide)]))
    if wish.out:
        about = {"device": name, "torch": torch.__version__, "layers": wish.layers, "dropout": wish.dropout}
        said = about | {"lengths": [asdict(one) for one in long], "widths": [asdict(one) for one in wide]}
        wish.out.write_text(json.dumps(said, indent=1) + "\n", "utf-8")


def _numbers(said: str) -> list[int]:
    return [int(number) for number in said.split(",")]


def _wishes() -> argparse.Namespace:
    """Sizes that end within a minute on a CPU, and fill a GPU."""
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    many = "128,256,512,1024,2048,4096,8192" if gpu else "128,512,2048,8192"
    parser.add_argument("--lengths", type=_numbers, default=_numbers(many))
    parser.add_argument("--width", type=int, default=768 if gpu else 128, help="of the network that grows in length")
    parser.add_argument("--layers", type=int, default=12 if gpu else 2)
    parser.add_argument("--tokens", type=int, default=65536 if gpu else 8192, help="in a step, for all lengths")
    parser.add_argument("--reaches", type=_numbers, default=[128, 256], help="tokens seen to either side")
    parser.add_argument(
        "--widths", type=_numbers, default=_numbers("64,128,256,512,768,1024" if gpu else "64,128,256,512")
    )
    parser.add_argument("--length", type=int, default=512, help="of the sequences while the network grows in width")
    parser.add_argument("--wide-tokens", type=int, default=65536 if gpu else 2048, help="in a step, for all widths")
    parser.add_argument("--dropout", type=float, default=0.0, help="also of attention, which then is no longer flash")
    parser.add_argument("--rounds", type=int, default=5 if gpu else 3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of a CPU")
    parser.add_argument("--device", default="cuda" if gpu else "cpu")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    wish = parser.parse_args()
    for tokens, length in [(wish.wide_tokens, wish.length), *((wish.tokens, length) for length in wish.lengths)]:
        if tokens % length:
            parser.error(f"{tokens} tokens cannot be parted into sequences of {length}; take a multiple")
    return wish


if __name__ == "__main__":
    main()

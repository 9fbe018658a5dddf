"""Pre-training on one GPU, side by side with `transformers`: tokens a second, time and memory of a step, and MFU.

    python -m bench.speed.pretrain_gpu --out gpu.json
    python -m bench.speed.pretrain_gpu --members --data FOLDER --sizes small base --out members.json
    python -m bench.speed.pretrain_gpu --members electra --data FOLDER --sizes small --profile --no-compile
    python -m bench.speed.pretrain_gpu --members electra --data FOLDER --sizes small --grow 1 10 100 --graphs --no-compile
    python -m bench.speed.pretrain_gpu --device cpu --sizes tiny --lengths 128 --rows 2 --steps 1 --no-compile     (a check)

What arrives: a prepared corpus (`--data`), or nothing: then rows are full and their ids uniformly random, because only
time is measured here. What leaves: one table, and the same as JSON. With `--members` every member of the family instead
(`pretrain_members.py`), with `--grow` on the same text repeated to several sizes (`grown.py`); with `--profile` also
the kernels and the gaps of one step of ours (`kernels.py`).
What never happens here: a difference in the work. Both sides begin with the same weights and see the same masked rows,
in bfloat16 (autocast), with fused AdamW and clipping; theirs with SDPA, as it is and compiled. Dropout is 0.1, in
attention too (BERT, and what `BertConfig` has unless it is told otherwise), and none at all, as in recent recipes. Rows
of a corpus are packed with documents, which see each other on both sides; then ours once more with documents apart, as
`unmask pretrain` has them: that is less work.

MFU counts what a token needs, forward and backward, with logits and all of the last block but its keys and values at
the chosen positions only (`unmask.nets.accounting.flops`). It is given against the rate of a product of 8192 x 8192 matrices that
is measured first, or against `--peak`. Both sides are measured by the same count, so what theirs computes beyond it is
not credited. Our rows come from the real loader; "waited" is the share of a step that the host waited for it, "lost"
how much faster the same steps are, once more, with lessons that lie ready. Theirs gets no mask where rows
are full: random ones are; those of a corpus end between words, so it gets their mask. With `--masked` it is also given
random rows with a mask of ones, as its collator makes it: compiled, that takes another kernel for attention.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from bench.speed.common.both_sides import LEARNS, How, Ours, Theirs, repeat
from bench.speed.common.grown import grown
from bench.speed.common.kernel_profile import tell
from bench.speed.common.rows import cloze_feed, grids
from bench.speed.common.timing import WARM, Timed, Turns, clean, gib, learn, matmul_rate
from bench.speed.pretrain_members import measure_members
from unmask.config.attention_pattern import FULL, WITHIN_DOCUMENT
from unmask.core.ragged import positions_in_rows
from unmask.core.records import Cloze, Inputs, InputsAndTargets, Spans
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.packed import DocumentBoundary
from unmask.nets.accounting.flops import STEP, encoder_cost, lm_head_cost, sparse_last_block_saving
from unmask.train.batches.recipe_batches import StepBatch
from unmask.train.flops_meter import workload_of

PREDICTED = 0.15
COMPILED, MASKED = "compiled", "masked"


@dataclass(frozen=True)
class Found:
    """What was measured of one side."""

    size: str
    rows: str
    dropout: str
    """Of states, and of attention."""
    side: str
    how: str
    tokens_per_second: float
    ms_per_step: float
    gib: float
    mfu: float
    waited: float
    lost: float
    loss: float
    ratios: tuple[float, ...] = ()
    """Of tokens a second, to each of theirs with these rows in the order in which they were measured."""

    def line(self) -> str:
        """One line of the table."""
        ratios = "".join(f"{ratio:>6.2f}x" for ratio in self.ratios)
        return (
            f"{self.size:>6} {self.rows:>8} {self.dropout:>7}  {self.side:12} {self.how:16} "
            f"{self.tokens_per_second:>10,.0f} {self.ms_per_step:>8.1f} {self.gib:>6.1f} {100 * self.mfu:>6.1f} "
            f"{100 * self.waited:>6.2f}% {100 * self.lost:>5.1f}% {self.loss:>7.3f}{ratios}"
        )


def main() -> None:
    wish = _wishes()
    warnings.filterwarnings("ignore")
    torch.set_float32_matmul_precision("high")
    device = torch.device(wish.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    wish.peak = wish.peak or matmul_rate(device)
    print(f"{name}, torch {torch.__version__}; {'random ids in full rows' if not wish.data else wish.data}")
    print(f"100 % are {wish.peak:.2f} TFLOP/s")
    found = list(_members(wish) if wish.members is not None else _pairs(wish, device))
    if wish.out:
        about = {"device": name, "torch": torch.__version__, "peak": wish.peak, "data": str(wish.data or "random")}
        wish.out.write_text(json.dumps(about | {"found": found}, indent=1) + "\n", "utf-8")


def _members(wish: argparse.Namespace) -> Iterator[dict[str, object]]:
    with grown(wish.data, wish.grow) as corpora:
        for data in corpora:
            tokens = Corpus.open(data).manifest.counts.tokens
            print(f"{tokens:,} tokens of text")
            for one in measure_members(argparse.Namespace(**vars(wish) | {"data": data}), wish.peak):
                print(one.line(), flush=True)
                yield asdict(one) | {"text": tokens}


def _pairs(wish: argparse.Namespace, device: torch.device) -> Iterator[dict[str, object]]:
    print(
        f"{'size':>6} {'rows':>8} {'dropout':>7}  {'side':12} {'how':16} {'tokens/s':>10} {'ms/step':>8} {'GiB':>6} "
        f"{'MFU %':>6} {'waited':>7} {'lost':>6} {'loss':>7}   times theirs"
    )
    for size in wish.sizes:
        for length in wish.lengths:
            held: list[Found] = []
            for dropout, attention_dropout in wish.dropout:
                how = How(size, wish.vocabulary, device, half=True, fused=not wish.plain, sparing=not wish.plain)
                how = replace(how, dropout=dropout, attention_dropout=attention_dropout)
                held += compare(how, length, wish, held)
            yield from map(asdict, held)


def compare(how: How, length: int, wish: argparse.Namespace, before: Sequence[Found]) -> list[Found]:
    """Theirs, as it is and compiled, then ours: each has the device for itself.

    `before`: what was found with these rows and other dropout; ratios are given to that as well.
    """
    count = wish.rows or wish.tokens // length
    make = _instances(wish.data, how.vocabulary, count, length)
    some = [make(turn) for turn in range(WARM)]
    theirs = _ways(wish)
    sides = [
        *["transformers" for _ in theirs],
        "ours",
        *(["ours, apart"] if wish.data else []),
    ]
    held = [*before]
    for number, side in enumerate(sides):
        clean(how.device)
        apart, mine = side == "ours, apart", side != "transformers"
        way = theirs[number] if not mine else "recorded" if wish.graphs else "eager"
        like = StepBatch((), LEARNS, WITHIN_DOCUMENT if apart else FULL, "cloze", length)
        timed = (
            _time_ours(how, make, like, wish)
            if mine
            else _time_theirs(replace(how, compiled=COMPILED in way), make, wish, masked=MASKED in way)
        )
        speed = timed.tokens / timed.seconds
        mfu = speed * operations(how, some, apart) / wish.peak / 1e12
        ratios = tuple(speed / one.tokens_per_second for one in held if one.side == "transformers") if mine else ()
        told = (side, way, speed, 1000 * timed.seconds, timed.gib, mfu, timed.stalled, timed.lost, timed.loss, ratios)
        held.append(Found(how.size, f"{count}x{length}", f"{how.dropout:g}/{how.attention_dropout:g}", *told))
        print(held[-1].line(), flush=True)
    return held[len(before) :]


def operations(how: How, instances: Sequence[InputsAndTargets], apart: bool) -> float:
    """Floating-point operations that learning from one token of these rows takes, forward and backward."""
    cost = encoder_cost(how.trunk) + lm_head_cost(how.trunk, how.vocabulary)
    if how.sparing:
        cost += sparse_last_block_saving(how.trunk)
    loads = [workload_of(one, LEARNS, apart) for one in instances]
    asked = [sum(load.predictions.values()) for load in loads]
    # Rows are asked about as much as they are long.
    looks = [load.token_pairs * some / load.tokens for load, some in zip(loads, asked, strict=True)]
    each = zip(loads, asked, looks, strict=True)
    total = sum(cost.forward(load.tokens, load.token_pairs, some, look) for load, some, look in each)
    return STEP * total / sum(load.tokens for load in loads)


def _time_ours(how: How, make: Callable[[int], InputsAndTargets], like: StepBatch, wish: argparse.Namespace) -> Timed:
    """Rows are made, masked and sent by the loader, while the step before is computed."""
    ours = Ours.of(replace(how, graphs=wish.graphs))
    timed = learn(ours.worker, Turns(make, like), wish.steps)
    if wish.profile:
        loaded = ours.load(make(0), like.max_length, like.attention.isolate_documents)
        print("\n".join(tell(lambda: ours.step(loaded), how.device)))
    return timed


def _ways(wish: argparse.Namespace) -> tuple[str, ...]:
    """How theirs is measured: in the order of the ratios."""
    if not wish.theirs:
        return ()
    compiled = (COMPILED, f"{COMPILED}, {MASKED}") if wish.masked else (COMPILED,)
    return ("eager", *(compiled if wish.compile else ()))


def _time_theirs(how: How, make: Callable[[int], InputsAndTargets], wish: argparse.Namespace, masked: bool) -> Timed:
    """Rows were made and masked before: theirs is not asked to wait for our data."""
    theirs = Theirs.of(how)
    instances = [make(turn) for turn in range(WARM)]
    seconds, loss = repeat(theirs, [grids(one, 0, masked) for one in instances], wish.steps)
    tokens = statistics.mean(len(instances[turn % WARM].inputs.ids) for turn in range(WARM, WARM + wish.steps))
    return Timed(seconds, 0.0, seconds, tokens, loss, gib(how.device))


def _instances(data: Path | None, vocabulary: int, rows: int, length: int) -> Callable[[int], InputsAndTargets]:
    """Batches of masked rows by number: those of a corpus, made when they are asked for, or random ones in turns."""
    if data is None:
        drawn = [_random(vocabulary, rows, length, seed) for seed in range(WARM)]
        return lambda step: drawn[step % len(drawn)]
    feed = cloze_feed(Corpus.open(data), length, DocumentBoundary.BORDERS)
    return lambda step: feed(step, rows)


def _random(vocabulary: int, rows: int, length: int, seed: int) -> InputsAndTargets:
    """Full rows of random ids, 15 of 100 of them to be said."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, vocabulary, (rows * length,), generator=draw, dtype=torch.int32).numpy()
    chosen = torch.randperm(len(ids), generator=draw)[: int(PREDICTED * len(ids))].sort().values.numpy()
    borders = np.arange(rows + 1) * length
    empty = np.zeros(len(ids), dtype=np.int64)
    inputs = Inputs(
        ids=ids,
        segment=empty.astype(np.uint8),
        document=empty.astype(np.int32),
        position=positions_in_rows(borders),
        rows=borders,
    )
    return InputsAndTargets(inputs, (Cloze(chosen, ids[chosen], Spans(chosen, chosen + 1)),))


def _rates(text: str) -> tuple[float, float]:
    """Dropout of states and of attention."""
    states, _, attention = text.partition("/")
    return float(states), float(attention or states)


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data", type=Path, help="a prepared corpus; without it random rows")
    parser.add_argument("--sizes", nargs="+", default=["small", "base"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[128, 512])
    parser.add_argument(
        "--dropout", nargs="+", type=_rates, default=[(0.1, 0.1), (0.0, 0.0)], help="of states/of attention, e.g. 0.1/0"
    )
    parser.add_argument("--vocabulary", type=int, default=21_128)
    parser.add_argument(
        "--tokens", type=int, default=32_768, help="places in a micro-batch: 256 rows of 128, 64 of 512"
    )
    parser.add_argument("--rows", type=int, default=0, help="rows in a micro-batch, instead of that")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True, help="also compiled")
    parser.add_argument("--theirs", action=argparse.BooleanOptionalAction, default=True, help="transformers beside it")
    parser.add_argument("--masked", action="store_true", help="theirs compiled also with a mask of ones; random rows")
    parser.add_argument("--members", nargs="*", help="members instead, by name or all of them; needs --data")
    parser.add_argument(
        "--grow", nargs="+", type=int, default=[], help="with --members: the corpus in these sizes, millions of tokens"
    )
    parser.add_argument("--even", action="store_true", help="with --members: batches evened out to few shapes")
    parser.add_argument(
        "--aside",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="with --members and --graphs: the generator runs on a second CUDA stream",
    )
    parser.add_argument(
        "--loader-process",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="with --members: lessons are made by a process of their own, as `unmask pretrain` has it, or by a thread",
    )
    parser.add_argument("--plain", action="store_true", help="ours as `unmask pretrain --no-kernels` has it")
    parser.add_argument("--graphs", action="store_true", help="our steps as CUDA graphs")
    parser.add_argument("--profile", action="store_true", help="also the kernels and the gaps of one step of ours")
    parser.add_argument("--peak", type=float, default=0.0, help="TFLOP/s that count as 100 %%; measured if not given")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    wish = parser.parse_args()
    if wish.members is not None and not wish.data:
        parser.error("--members reads real text: give a corpus that `unmask prepare` has made with --data")
    if wish.masked and wish.data:
        parser.error("--masked is about rows that are full; those of a corpus are not, and have a mask anyway")
    return wish


if __name__ == "__main__":
    main()

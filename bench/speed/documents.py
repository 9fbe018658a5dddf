"""Real documents on one device: real tokens a second of ours, and of `transformers` in its two ways to make rows.

    python -m bench.speed.documents --data FOLDER [FOLDER ...] --size base --out documents.json
    python -m bench.speed.documents --data FOLDER --size tiny --tokens 2048 --steps 2 --device cpu --no-compile     (a check)

What arrives: prepared corpora. What leaves: one table, with the ratio of ours to each of theirs, eager and compiled
named apart. Real tokens are text and special tokens; padding is computed by who pads, and counted by nobody.
Ours fills rows with several documents that do not see each other, and has its real loader on the clock. Theirs either
has a piece of one document in a row, padded to the full length by its collator, or text that runs on across documents,
which then see each other; its batches lie ready, so that it waits for nothing. Full rows come with a mask of ones, as
its collator hands them out, and without: compiled, these take two kernels for attention, of which either may be faster.
With several `--dropout` everything is measured under each, and each of theirs is held against ours under each.
What never happens here: a difference in the network. Both have the same weights, fused AdamW, clipping and bfloat16.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bench.speed.common.both_sides import LEARNS, How, Ours, Theirs, repeat
from bench.speed.common.rows import cloze_feed, collator_of, joined, unmasked
from bench.speed.common.timing import WARM, Turns, clean, learn
from unmask.config.attention_pattern import WITHIN_DOCUMENT
from unmask.core.records import Ids
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.packed import DocumentBoundary
from unmask.train.batches.recipe_batches import StepBatch

OURS = "ours"


@dataclass(frozen=True)
class Found:
    """What was measured of one side."""

    side: str
    how: str
    dropout: float
    """On this side, also in attention."""
    real_per_second: float
    ms_per_step: float
    filled: float
    """The share of computed places that are real tokens."""
    waited: float = 0.0
    ours_beside: tuple[float, ...] = ()
    """How many times as fast ours is, with each dropout."""

    def line(self) -> str:
        """One line of the table."""
        ratios = "".join(f"{ratio:>7.2f}x" for ratio in self.ours_beside)
        return (
            f"{self.side:24} {self.how:9} {self.dropout:>7g} {self.real_per_second:>11,.0f} {self.ms_per_step:>9.1f} "
            f"{100 * self.filled:>6.1f}% {100 * self.waited:>6.2f}%{ratios}"
        )

    def beside(self, ours: Sequence[Found]) -> Found:
        """The same with its ratios."""
        return replace(self, ours_beside=tuple(one.real_per_second / self.real_per_second for one in ours))


@dataclass(frozen=True)
class Text:
    """A corpus, and its batches as theirs takes them."""

    path: Path
    corpus: Corpus
    theirs: dict[str, list[dict[str, Tensor]]]

    @staticmethod
    def of(path: Path, wish: argparse.Namespace) -> Text:
        """Batches in all their ways."""
        corpus = Corpus.open(path)
        full = _joined(corpus, path, wish)
        bare = [unmasked(one) for one in full]
        return Text(path, corpus, {"padded": _padded(corpus, path, wish), "joined": full, "joined, no mask": bare})

    def head(self) -> str:
        """What stands above its lines."""
        counts = self.corpus.manifest.counts
        documents, tokens = counts.documents, counts.tokens
        return f"\n{self.path.name}: {documents:,} documents of {tokens / documents:,.0f} tokens, {tokens:,} in all"


def main() -> None:
    wish = _wishes()
    warnings.filterwarnings("ignore")
    torch.set_float32_matmul_precision("high")
    texts = [Text.of(path, wish) for path in wish.data]
    if len({text.path.name for text in texts}) < len(texts):
        raise SystemExit("documents.py tells corpora apart by the names of their folders: give them different ones")
    vocabulary = wish.vocabulary or max(text.corpus.vocab.size for text in texts)
    found: dict[str, list[Found]] = {text.path.name: [] for text in texts}
    for drop in wish.dropout:
        device = torch.device(wish.device)
        how = How(wish.size, vocabulary, device, half=True, dropout=drop, attention_dropout=drop)
        for text, one in _measured(how, texts, wish):
            found[text.path.name].append(one)
            print(f"{text.path.name}: {one.line()}", file=sys.stderr, flush=True)
    print(f"{wish.size}, {vocabulary:,} rows of vocabulary, rows of {wish.length}, {wish.tokens:,} places in a step")
    print(f"dropout also in attention; torch {torch.__version__}; the last columns: times as fast as each is ours")
    head = "".join(f"{f'at {drop:g}':>8}" for drop in wish.dropout)
    print(f"{'side':24} {'how':9} {'dropout':>7} {'real tok/s':>11} {'ms/step':>9} {'filled':>7} {'waited':>7}{head}")
    for text in texts:
        held = found[text.path.name]
        ours = [one for one in held if one.side == OURS]
        found[text.path.name] = held = [one.beside(ours) for one in held]
        print("\n".join([text.head(), *(one.line() for one in held)]))
    if wish.out:
        told = {name: [asdict(one) for one in some] for name, some in found.items()}
        wish.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _measured(how: How, texts: Sequence[Text], wish: argparse.Namespace) -> Iterator[tuple[Text, Found]]:
    """Ours on every corpus, then each of their ways on every corpus: what is compiled once serves all."""
    for text in texts:
        clean(how.device)
        yield text, _ours(how, text.corpus, wish)
    for compiled in (False, True) if wish.compile else (False,):
        for name in texts[0].theirs:
            clean(how.device)
            theirs = Theirs.of(replace(how, compiled=compiled))
            for text in texts:
                said = "compiled" if compiled else "eager"
                speed, seconds, filled = _theirs(theirs, text.theirs[name], wish.steps)
                yield text, Found(f"theirs, {name}", said, how.dropout, speed, 1000 * seconds, filled)
            del theirs  # the next one has the device for itself


def _ours(how: How, corpus: Corpus, wish: argparse.Namespace) -> Found:
    feed, rows = cloze_feed(corpus, wish.length, DocumentBoundary.BORDERS), wish.tokens // wish.length
    like = StepBatch((), LEARNS, WITHIN_DOCUMENT, "cloze", wish.length)
    how = replace(how, graphs=how.device.type == "cuda")
    said = "recorded" if how.graphs else "eager"
    timed = learn(Ours.of(how).worker, Turns(lambda step: feed(step, rows), like), wish.steps)
    speed, filled = timed.tokens / timed.seconds, timed.tokens / timed.places
    return Found(OURS, said, how.dropout, speed, 1000 * timed.seconds, filled, timed.stalled)


def _theirs(theirs: Theirs, batches: list[dict[str, Tensor]], steps: int) -> tuple[float, float, float]:
    """Real tokens a second, seconds of a step, and the share of its places that they fill."""
    seconds, _ = repeat(theirs, batches, steps)
    tokens = statistics.mean(_real(batches[turn % len(batches)]) for turn in range(WARM, WARM + steps))
    return tokens / seconds, seconds, tokens / batches[0]["input_ids"].numel()


def _padded(corpus: Corpus, path: Path, wish: argparse.Namespace) -> list[dict[str, Tensor]]:
    """A piece of one document in a row, in a random order, padded to the full length."""
    feed, rows = cloze_feed(corpus, wish.length, DocumentBoundary.NEVER), wish.tokens // wish.length
    examples = [feed.build_rows(feed.sampler(turn * rows + np.arange(rows))[0]) for turn in range(wish.batches)]
    return [_masked(np.split(one.ids, one.rows[1:-1]), path, wish) for one in examples]


def _joined(corpus: Corpus, path: Path, wish: argparse.Namespace) -> list[dict[str, Tensor]]:
    """Text that runs on across documents, in a random order of rows."""
    made, rows = joined(corpus, wish.length), wish.tokens // wish.length
    order = np.random.default_rng(1).permutation(len(made))[: wish.batches * rows].reshape(wish.batches, -1)
    return [_masked(list(made[some]), path, wish) for some in order]


def _masked(rows: list[Ids], path: Path, wish: argparse.Namespace) -> dict[str, Tensor]:
    """What their collator makes of some rows."""
    collator = collator_of(path)
    lists = [{"input_ids": ids.tolist()} for ids in rows]
    full = collator.tokenizer.pad(lists, padding="max_length", max_length=wish.length)
    return dict(collator([dict(zip(full, row, strict=True)) for row in zip(*full.values(), strict=True)]))


def _real(batch: dict[str, Tensor]) -> int:
    mask = batch.get("attention_mask")
    return batch["input_ids"].numel() if mask is None else int(mask.sum())


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="prepared corpora")
    parser.add_argument("--size", default="base")
    parser.add_argument("--vocabulary", type=int, default=0, help="rows of the network's table; as the corpora need")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=65_536, help="places in a step")
    parser.add_argument("--dropout", type=float, nargs="+", default=[0.1, 0.0], help="on both sides, also in attention")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batches", type=int, default=8, help="different batches on their side")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True, help="also compiled")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()

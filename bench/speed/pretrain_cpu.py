"""Pre-training on a CPU, side by side with `transformers`: the same network, weights, rows and batch, in one process.

    .venv/bin/python -m bench.speed.pretrain_cpu --quick
    .venv/bin/python -m bench.speed.pretrain_cpu --data FOLDER --sizes mini small --lengths 128 512

What arrives: a prepared corpus, or nothing: then the embedded one is prepared in a temporary folder.
What leaves: two tables. First, full rows: ours against `BertForMaskedLM` with `DataCollatorForLanguageModeling`, SDPA
and fused AdamW in a plain loop. Second, rows of one document each, which theirs pads to the longest of the batch.
What never happens here: a difference in the task. Both learn masked tokens only, with dropout 0.1, in float32.

The sides take turns, a few steps each, and every ratio is the median over these rounds, so other work on the machine
counts little; with `--threads 1` processor time is taken, and it counts hardly at all. A step includes its data:
fetching, masking and collating on our side, masking and collating of rows that lie ready as lists on theirs. Speeds
count text and special tokens, no padding.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import DataCollatorForLanguageModeling

from bench.speed.common.both_sides import How, Ours, Theirs, apart
from bench.speed.common.rows import cloze_feed, collator_of
from unmask.core.records import InputsAndTargets
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.packed import DocumentBoundary
from unmask.tasks.batches import TaskBatches, to_padded

CHINESE_BERT = 21_128
TOKENS = 4096
"""Places in a batch: 32 rows of 128, 8 of 512."""
ROWS = {"full rows": DocumentBoundary.BORDERS, "a document a row": DocumentBoundary.NEVER}
HEAD = (
    f"{'size':>6} {'rows':>7}  {'ours':>7} {'theirs':>7} {'ratio':>6}  {'loader':>6}  {'loss, ours':>14} {'theirs':>14}"
)


@dataclass
class Times:
    """What was measured of one network on one kind of rows."""

    tokens: int = 0
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    loading: float = 0.0
    losses: list[tuple[float, float]] = field(default_factory=list)

    def line(self, size: str, rows: str) -> str:
        """One line of the table."""
        ratio = statistics.median(b / a for a, b in zip(self.ours, self.theirs, strict=True))
        speeds = [self.tokens / sum(times) for times in (self.ours, self.theirs)]
        loader = 100 * self.loading / sum(self.ours)
        (first, other), (last, last_other) = self.losses[0], self.losses[-1]
        return (
            f"{size:>6} {rows:>7}  {speeds[0]:>7,.0f} {speeds[1]:>7,.0f} {ratio:>5.2f}x  {loader:>5.1f}%"
            f"  {first:>5.2f} -> {last:>5.2f} {other:>5.2f} -> {last_other:>5.2f}"
        )


@dataclass(frozen=True)
class Rows:
    """The same rows for both sides."""

    feed: TaskBatches
    length: int
    collator: DataCollatorForLanguageModeling
    clock: Callable[[], float]

    @property
    def count(self) -> int:
        """Rows in a batch."""
        return TOKENS // self.length

    def instance(self, step: int) -> InputsAndTargets:
        """Our rows of a step, masked."""
        return self.feed(step, self.count)

    def lists(self, step: int) -> list[dict[str, Any]]:
        """The same rows as a user of the collator has them: token ids as lists."""
        row, _ = self.feed.sampler(step * self.count + np.arange(self.count))
        example = self.feed.build_rows(row)
        return [{"input_ids": ids.tolist()} for ids in np.split(example.ids, example.rows[1:-1])]


def main() -> None:
    wish = _wishes()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(wish.threads)
    # The processor time of one thread is its work; of several it also counts how they wait for each other.
    clock = time.process_time if wish.threads == 1 else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        data = wish.data or _prepared(Path(folder))
        corpus = Corpus.open(data)
        vocabulary = max(wish.vocabulary, corpus.vocab.size)
        print(f"{corpus.manifest.counts.tokens:,} tokens of text; a network with {vocabulary:,} rows of vocabulary;")
        print(f"{wish.threads} threads, torch {torch.__version__}; tokens a second, and the median of the ratios")
        for name, join in ROWS.items():
            print(f"\n{name}\n{HEAD}")
            for length in wish.lengths:
                rows = Rows(cloze_feed(corpus, length, join), length, collator_of(data), clock)
                for size in wish.sizes:
                    how = How(size, vocabulary, torch.device("cpu"))
                    times = measure(how, rows, wish.steps, wish.rounds)
                    print(times.line(size, f"{rows.count}x{length}"), flush=True)


def measure(how: How, rows: Rows, steps: int, rounds: int) -> Times:
    """Both sides in turns on the same rows. The first round warms up and is not counted."""
    ours, theirs, times = Ours.of(how), Theirs.of(how), Times()
    _check_equal(ours, theirs, rows)
    for turn in range(rounds + 1):
        numbers = range(turn * steps, (turn + 1) * steps)
        lists = [rows.lists(number) for number in numbers]
        mine = _our_steps(ours, rows, numbers)
        taken, loss = _their_steps(theirs, rows, lists)
        times.losses.append((mine[2], loss))
        if turn:
            times.ours.append(mine[0])
            times.theirs.append(taken)
            times.loading += mine[1]
            times.tokens += sum(len(row["input_ids"]) for some in lists for row in some)
    return times


def _our_steps(ours: Ours, rows: Rows, numbers: Sequence[int]) -> tuple[float, float, float]:
    """Seconds for some steps, how many of them went into data, and the mean loss."""
    begun, loading, losses = rows.clock(), 0.0, []
    for number in numbers:
        asked = rows.clock()
        loaded = ours.load(rows.instance(number), rows.length)
        loading += rows.clock() - asked
        losses.append(ours.step(loaded))
    return rows.clock() - begun, loading, float(torch.stack(losses).mean())


def _their_steps(theirs: Theirs, rows: Rows, lists: list[list[dict[str, Any]]]) -> tuple[float, float]:
    """Seconds for some steps, and the mean loss."""
    begun = rows.clock()
    losses = [theirs.step(dict(rows.collator(some))) for some in lists]
    return rows.clock() - begun, float(torch.stack(losses).mean())


def _check_equal(ours: Ours, theirs: Theirs, rows: Rows) -> None:
    """Refuse to measure two networks that are not the same."""
    instance = rows.instance(0)
    batch = {name: torch.from_numpy(array) for name, array in to_padded(instance, rows.feed.corpus.vocab.pad).items()}
    difference = apart(ours, theirs, ours.load(instance, rows.length), batch)
    if difference > 1e-4:
        raise SystemExit(f"the two networks differ: their losses on the same rows are {difference:.2g} apart")


def _prepared(folder: Path) -> Path:
    """The embedded corpus, prepared with the command that a user would type."""
    from unmask.cli.main import app
    from unmask.data.text.sample_corpora import peoples_daily

    text, data = folder / "peoples_daily.txt", folder / "data"
    text.write_text("\n\n".join(document.text for document in peoples_daily()) + "\n", encoding="utf-8")
    app(["prepare", str(text), "--for", "bert", "--out", str(data)], standalone_mode=False)
    return data


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="a prepared corpus; without it the embedded one")
    parser.add_argument("--sizes", nargs="+", default=["mini", "small"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--vocabulary", type=int, default=CHINESE_BERT, help="rows of the token embedding, at least")
    parser.add_argument("--steps", type=int, default=2, help="steps of each side in a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="mini alone, one step a round, three rounds")
    wish = parser.parse_args()
    if wish.quick:
        wish.sizes, wish.steps, wish.rounds = ["mini"], 1, 3
    return wish


if __name__ == "__main__":
    main()

"""A corpus that grows: the same text repeated to several sizes, and what a step, the plan and memory make of it.

What arrives: a prepared corpus and sizes. What leaves: one line for each size, and sentences about what stays and what
grows. Each size is measured in a process of its own.
What never happens here: writing into the corpus (`grown.py`).

Memory is what belongs to the process alone and cannot be dropped: anonymous pages, as Linux counts them. Pages of the
shards are not among them: the system keeps as many as it has room for.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.speed.common.grown import grown
from bench.speed.common.timing import learn
from bench.speed.data_steps import ROWS, give_back, lessons_at, moments, own_memory, reading, take
from bench.speed.pretrain_members import worker_of
from unmask.data.corpus.corpus import Corpus
from unmask.members import member, members
from unmask.train.batches.recipe_batches import RecipeBatches
from unmask.train.run_config import default_run_config

STEPS = 200
LEARNER, LEARNED = "tiny", 6
"""The size of the network that learns, and in how many steps: the smallest, for which the loader counts most."""
FLAT = 1.25
"""What varies by less than this, on a machine that does other work too, is called flat."""
MIB = 2**20
HEAD = (
    f"{'member':>9} {'length':>6} {'tokens':>11} {'shards':>6} {'met':>4} {'open':>5} {'plan':>6} {'order':>6} "
    f"{'build':>6} {'all':>6} {'learn':>6} {'rows':>9} {'B/row':>6} {'table':>6} {'own':>6} {'steps':>6} {'held':>6}"
)


@dataclass(frozen=True)
class Size:
    """What was measured at one size. Times are processor seconds, memory is in bytes."""

    member: str
    length: int
    tokens: int
    shards: int
    opened: float
    planned: float
    order: float
    """Seconds a token, the median over steps: to find which rows are read; to read and corrupt them too; all."""
    build: float
    all: float
    learn: float
    """Seconds a token of steps that learn, with a small network, on the clock of the wall."""
    met: float
    """Shards that the rows of a step come from, on average."""
    rows: int
    plan: int
    own: float
    """What opening and planning added to the memory of the process; not a number where the system does not say."""
    steps: float
    held: float
    """What is left, with what steps added, once the allocator has given back what is free."""

    def line(self) -> str:
        """One line of the table."""
        return (
            f"{self.member:>9} {self.length:>6} {self.tokens:>11,} {self.shards:>6,} {self.met:>4.0f} "
            f"{self.opened:>5.2f} {self.planned:>6.2f} {self.order * 1e9:>6.1f} {self.build * 1e9:>6.1f} "
            f"{self.all * 1e9:>6.1f} {self.learn * 1e6:>6.2f} {self.rows:>9,} {self.plan / self.rows:>6.1f} "
            f"{self.plan / MIB:>6.1f} {self.own / MIB:>6.1f} {self.steps / MIB:>6.1f} {self.held / MIB:>6.1f}"
        )


def compare_sizes(wishes: argparse.Namespace) -> None:
    """All sizes of each member and length, and what they say together."""
    print(f"steps of {ROWS} rows at {STEPS} moments; met: shards that a step reads; open, plan: processor seconds")
    print(
        "order, build, all: nanoseconds a token to find which rows come, to read and corrupt them too, to collate too"
    )
    print(f"learn: microseconds a token to learn from them, with {LEARNER}, the loader at work beside it")
    print(
        "rows: of the plan, its bytes a row, its MiB; MiB that planning added (own), that steps added, that are held\n"
    )
    print(HEAD)
    groups: list[list[Size]] = []
    with grown(wishes.data, wishes.sizes) as corpora:
        for name in wishes.members or [members()[0].name]:
            for length in wishes.lengths:
                groups.append(_group(corpora, name, length, wishes.rounds))
    for found in groups if len(wishes.sizes) > 1 else ():
        print("\n" + "\n".join(_sentences(found)))


def _group(corpora: list[Path], name: str, length: int, rounds: int) -> list[Size]:
    """All sizes in turn, several times; of each size the round that was neither fast nor slow."""
    found = [[_apart(data, name, length) for data in corpora] for _ in range(rounds)]
    group = [sorted(sizes, key=lambda size: size.all)[rounds // 2] for sizes in zip(*found, strict=True)]
    for size in group:
        print(size.line(), flush=True)
    return group


def alone(wishes: argparse.Namespace) -> None:
    """Measure one size in this process, and say it in one line of JSON."""
    (name,), (length,) = wishes.members, wishes.lengths
    recipe, before, began = member(name, LEARNER), own_memory(), time.thread_time()
    corpus = Corpus.open(wishes.data)
    opened = time.thread_time()
    lessons = lessons_at(recipe, length, corpus)
    planned = time.thread_time()
    ready = own_memory()
    steps = [take(lessons, moment, even=False) for moment in moments(lessons, STEPS)]
    after = own_memory()
    give_back()
    held = own_memory()
    order, met = reading(lessons, STEPS)
    plans = [feed.plan for feed in (*lessons.task_batches.values(), *lessons.heldout)]
    size = Size(
        member=name,
        length=length,
        tokens=corpus.manifest.counts.tokens,
        shards=len(corpus.shards),
        opened=opened - began,
        planned=planned - opened,
        order=order,
        build=statistics.median(step.build / step.tokens for step in steps),
        all=statistics.median((step.build + step.collate) / step.tokens for step in steps),
        learn=_learned(lessons, corpus.vocab.size),
        met=met,
        rows=sum(map(len, plans)),
        plan=sum(plan.num_bytes + sum(fact.nbytes for fact in plan.facts.values()) for plan in plans),
        own=ready - before,
        held=held - before,
        steps=after - ready,
    )
    print(json.dumps(asdict(size)))


def _learned(lessons: RecipeBatches, vocabulary: int) -> float:
    """Seconds a token of steps as `unmask pretrain` takes them."""
    timed = learn(worker_of(lessons.recipe, lessons, vocabulary, default_run_config("cpu")), lessons, LEARNED)
    return timed.seconds / timed.tokens


def _apart(data: Path, name: str, length: int) -> Size:
    """One size, in a process of its own."""
    line = [
        sys.executable,
        "-m",
        "bench.speed.data",
        "--alone",
        "--data",
        str(data),
        "--members",
        name,
        "--lengths",
        str(length),
    ]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} with rows of {length}: {done.stderr.strip().splitlines()[-1]}")
    return Size(**json.loads(done.stdout))


def _sentences(found: list[Size]) -> Iterator[str]:
    """What stays, and what grows."""
    first, last = found[0], found[-1]
    added, orders = [one.steps / MIB for one in found], [one.order * 1e9 for one in found]
    yield (
        f"{first.member}, rows of {first.length}, {first.tokens:,} to {last.tokens:,} tokens: time a token to learn is "
        f"{_flat([one.learn for one in found])}; that of the loader's part is {_flat([one.all for one in found])}. "
        f"A step reads {first.met:.0f} to {last.met:.0f} shards, and takes {min(orders):.0f} to {max(orders):.0f} ns "
        "a token to find which rows come."
    )
    if math.isnan(last.own):
        yield "This system does not say what memory is a process's own (/proc/self/smaps_rollup), so none is told."
        return
    yield (
        f"Memory of the process's own: steps added {min(added):.1f} to {max(added):.1f} MiB. What grows is the plan, "
        f"{last.plan / last.rows:.1f} bytes a row, {last.plan / last.tokens:.2f} a token."
    )
    held = (last.held - first.held) / max(last.tokens - first.tokens, 1)
    planning = ", ".join(f"{size.planned / size.tokens * 1e9:.0f}" for size in found)
    yield f"Each further token holds {held:.2f} bytes in all; planning takes {planning} ns a token."


def _flat(times: list[float]) -> str:
    """Whether times are nearly equal."""
    ratio = max(times) / min(times)
    return f"{'flat' if ratio < FLAT else 'not flat'}, largest over smallest {ratio:.2f}"

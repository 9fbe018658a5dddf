"""Preparing Chinese text, side by side with a plain loop over jieba and `tokenizers`: speed, scaling, memory.

    .venv/bin/python -m bench.speed.prepare
    .venv/bin/python -m bench.speed.prepare --corpus FILE [FILE ...] --megabytes 20 80 --repeats 3

What arrives: any text that `unmask prepare` reads; without it, the embedded corpus. It is repeated, with a changed
first line, until there is enough. What leaves: one table.
What never happens here: learning. The vocabulary is learned beforehand, timed apart, and used by both sides.

The command does more than the loop: it also reads, cleans, removes duplicates, splits sentences, and writes shards.
Its time counts everything, the start of Python too. "Each further MB" is the slope between the smallest and the largest
corpus, which leaves the start out. The fastest of the repeats counts; its processor time is given too, so that one sees
whether the machine was free. Memory is that of all processes together, pages they share counted once.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

import jieba
from tokenizers import Tokenizer as Pipeline

from unmask.cli.ui.progress import duration
from unmask.data.corpus.document_stream import CollectConfig, DropCounts, stream_documents
from unmask.data.text.sample_corpora import peoples_daily
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.members import member

MB = 1_000_000


Case: TypeAlias = tuple[int, int]
"""Megabytes and processes."""


class Spent(NamedTuple):
    """What one run of the command took, in seconds."""

    wall: float
    processor: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--corpus", nargs="+", default=[], help="text; without it, the embedded corpus")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[20, 80], help="sizes to prepare")
    parser.add_argument("--loop", type=int, default=4, help="megabytes for the plain loop")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts")
    wishes = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory(prefix="unmask-bench-") as name:
        folder = Path(name)
        files = {size: write_text(folder / f"{size}.txt", wishes.corpus, size * MB) for size in wishes.megabytes}
        vocabulary = learn(files[min(files)], folder / "tokenizer.json")
        loop = max(plain_loop(files[min(files)], vocabulary, wishes.loop * MB) for _ in range(wishes.repeats))
        print(f"plain loop, jieba and tokenizers, one process: {loop:.2f} MB/s\n")
        cases = [(size, processes) for size in files for processes in wishes.processes]
        times = [[spend(files[size], vocabulary, n) for size, n in cases] for _ in range(wishes.repeats)]
        memory = [peak_memory(files[size], vocabulary, n) for size, n in cases]
        best = {case: min(column) for case, column in zip(cases, zip(*times, strict=True), strict=True)}
    report(best, dict(zip(cases, memory, strict=True)), loop)


def report(best: dict[Case, Spent], memory: dict[Case, int], loop: float) -> None:
    """One line for each size and number of processes."""
    sizes, processes = (sorted(set(part)) for part in zip(*best, strict=True))
    print(f"{'corpus':>7} {'processes':>9} {'seconds':>8} {'MB/s':>6} {'x loop':>7} {'x one':>6}", end=" ")
    print(f"{'processor s':>12} {'peak memory':>12}")
    for (size, number), spent in sorted(best.items()):
        speed, scaling = size / spent.wall, best[size, processes[0]].wall / spent.wall
        print(f"{size:>4} MB {number:>9} {spent.wall:>8.2f} {speed:>6.2f} {speed / loop:>6.1f}x", end=" ")
        print(f"{scaling:>5.2f}x {spent.processor:>12.2f} {memory[size, number] / MB:>9.0f} MB")
    if len(sizes) > 1:
        slope = {n: (sizes[-1] - sizes[0]) / (best[sizes[-1], n].wall - best[sizes[0], n].wall) for n in processes}
        figures = ", ".join(f"{speed:.2f} MB/s with {n} ({speed / loop:.1f}x loop)" for n, speed in slope.items())
        print(f"\neach further MB, without the start: {figures}; {slope[processes[-1]] / slope[processes[0]]:.2f}x")


def spend(text: Path, vocabulary: Path, processes: int) -> Spent:
    """The time that the command takes for a file."""
    before, began = os.times(), time.monotonic()
    with prepared(text, vocabulary, processes) as command:
        command.wait()
        seconds, after = time.monotonic() - began, os.times()
    processor = after.children_user - before.children_user + after.children_system - before.children_system
    return Spent(seconds, processor)


def peak_memory(text: Path, vocabulary: Path, processes: int) -> int:
    """The most memory that the command and its workers take at a time, in a run of its own: looking costs time."""
    peak = 0
    with prepared(text, vocabulary, processes) as command:
        while command.poll() is None:
            peak = max(peak, sum(map(proportional, [command.pid, *descendants(command.pid)])))
            time.sleep(0.05)
    return peak


@contextlib.contextmanager
def prepared(text: Path, vocabulary: Path, processes: int) -> Iterator[subprocess.Popen[bytes]]:
    """The command on its way; what it made is removed afterwards."""
    out = text.with_suffix(".out")
    words = ["prepare", text, "--tokenizer", vocabulary, "--out", out, "-j", processes]
    quiet = subprocess.DEVNULL
    command = subprocess.Popen([sys.executable, "-m", "unmask", *map(str, words)], stdout=quiet, stderr=quiet)
    yield command
    if command.returncode:
        sys.exit(f"preparing failed: {command.args!r}")
    shutil.rmtree(out)


def descendants(process: int) -> Iterator[int]:
    """The children of a process, and theirs."""
    with contextlib.suppress(OSError):
        for child in map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()):
            yield child
            yield from descendants(child)


def proportional(process: int) -> int:
    """The memory of a process; a page that n processes share counts 1/n."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def plain_loop(text: Path, vocabulary: Path, size: int) -> float:
    """MB/s of the simplest thing that cuts words and encodes them."""
    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()  # loading the dictionary is not counted
    tokenizer = Pipeline.from_file(str(vocabulary))
    with text.open(encoding="utf-8") as file:
        lines = file.read(size // 3).split("\n")
    began = time.perf_counter()
    ids: list[list[int]] = []
    for line in lines:
        ids.append(tokenizer.encode(jieba.lcut(line), is_pretokenized=True).ids)
    seconds = time.perf_counter() - began
    return sum(len(line.encode()) + 1 for line in lines) / MB / seconds


def learn(text: Path, path: Path) -> Path:
    """A vocabulary of BERT's size, learned from the smallest corpus."""
    began = time.perf_counter()
    with text.open(encoding="utf-8") as file:
        train_tokenizer(member("bert").tokenizer, (line.rstrip("\n") for line in file)).save(path)
    size = text.stat().st_size / MB
    print(f"learning a vocabulary from {size:.0f} MB, not counted below: {duration(time.perf_counter() - began)}")
    return path


def write_text(path: Path, corpus: Sequence[str], size: int) -> Path:
    """A file of about so many bytes, a blank line between documents, none of them twice."""
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for text in texts(corpus):
            file.write(text + "\n\n")
            written += len(text.encode()) + 2
            if written >= size:
                return path
    raise AssertionError("the texts never end")


def texts(corpus: Sequence[str]) -> Iterator[str]:
    """The texts of the corpus, again and again, each time under another heading."""
    for turn in count(1):
        documents = stream_documents(corpus, CollectConfig(), DropCounts()) if corpus else peoples_daily()
        for number, document in enumerate(documents):
            heading = f"第{turn}遍，第{number}篇。\n" if turn > 1 else ""
            yield heading + document.text.replace("\n\n", "\n")


if __name__ == "__main__":
    main()

"""Preparing Chinese text, side by side with a plain loop over jieba and `tokenizers`: speed, scaling, memory.

    .venv/bin/python bench/prepare.py
    .venv/bin/python bench/prepare.py --corpus FILE [FILE ...] --megabytes 20 80 --repeats 3

What arrives: any text that `unmask prepare` reads; without it, the embedded corpus. It is repeated, with a changed
first line, until there is enough. What leaves: one table.
What never happens here: learning. The vocabulary is learned beforehand, timed apart, and used by both sides.

The command does more than the loop: it also reads, cleans, removes duplicates, splits sentences, and writes shards.
Its time counts everything, the start of Python too. "Each further MB" is the slope between the smallest and the largest
corpus, which leaves the start out. Each figure is the best of the repeats; processor time is given too, because it
hardly depends on what else the machine does. Memory is that of all processes together, pages they share counted once.
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
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import jieba
from tokenizers import Tokenizer as Pipeline

from unmask.cli.progress import duration
from unmask.family import member
from unmask.shards.collect import Collecting, Tally, collect
from unmask.text.embedded import peoples_daily
from unmask.tokenize.train import train

MB = 1_000_000


@dataclass(frozen=True)
class Run:
    """What one run of the command took."""

    seconds: float
    processor: float
    memory: int


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
        best = {
            (size, processes): best_run(files[size], vocabulary, processes, wishes.repeats)
            for size in files
            for processes in wishes.processes
        }
    report(best, loop)


def report(best: dict[tuple[int, int], Run], loop: float) -> None:
    """One line for each size and number of processes."""
    sizes, processes = (sorted(set(part)) for part in zip(*best, strict=True))
    print(f"{'corpus':>7} {'processes':>9} {'seconds':>8} {'MB/s':>6} {'x loop':>7} {'x one':>6}", end=" ")
    print(f"{'processor s':>12} {'peak memory':>12}")
    for (size, number), run in sorted(best.items()):
        one = best[size, processes[0]]
        speed = size / run.seconds
        print(f"{size:>4} MB {number:>9} {run.seconds:>8.2f} {speed:>6.2f} {speed / loop:>6.1f}x", end=" ")
        print(f"{one.seconds / run.seconds:>5.2f}x {run.processor:>12.2f} {run.memory / MB:>9.0f} MB")
    if len(sizes) > 1:
        slope = {
            n: (sizes[-1] - sizes[0]) / (best[sizes[-1], n].seconds - best[sizes[0], n].seconds) for n in processes
        }
        figures = ", ".join(f"{speed:.2f} MB/s with {n} ({speed / loop:.1f}x loop)" for n, speed in slope.items())
        print(f"\neach further MB, without the start: {figures}; {slope[processes[-1]] / slope[processes[0]]:.2f}x")


def best_run(text: Path, vocabulary: Path, processes: int, repeats: int) -> Run:
    """The least time, processor time and memory of several runs."""
    runs = [run(text, vocabulary, processes) for _ in range(repeats)]
    return Run(*(min(getattr(found, name) for found in runs) for name in Run.__dataclass_fields__))


def run(text: Path, vocabulary: Path, processes: int) -> Run:
    """Prepare a file with the command, in processes of its own."""
    out = text.with_suffix(".out")
    words = ["prepare", text, "--tokenizer", vocabulary, "--out", out, "-j", processes]
    before, began = os.times(), time.monotonic()
    command = subprocess.Popen(
        [sys.executable, "-m", "unmask", *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with memory_of(command.pid) as peak:
        _, said = command.communicate()
    seconds, after = time.monotonic() - began, os.times()
    shutil.rmtree(out)
    if command.returncode:
        sys.exit(f"preparing failed: {said.decode()}")
    processor = after.children_user - before.children_user + after.children_system - before.children_system
    return Run(seconds, processor, max(peak))


@contextlib.contextmanager
def memory_of(process: int) -> Iterator[list[int]]:
    """The peak memory of a process and all it starts, sampled ten times a second."""
    peak, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            peak[0] = max(peak[0], sum(map(proportional, [process, *descendants(process)])))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


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
        train(member("bert").tokenizer, (line.rstrip("\n") for line in file)).save(path)
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
        documents = collect(corpus, Collecting(), Tally()) if corpus else peoples_daily()
        for number, document in enumerate(documents):
            heading = f"第{turn}遍，第{number}篇。\n" if turn > 1 else ""
            yield heading + document.text.replace("\n\n", "\n")


if __name__ == "__main__":
    main()

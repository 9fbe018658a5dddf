"""One step under the profiler: which kernels take the time, and where the device has nothing to do between them.

What arrives: something that takes a step. What leaves: lines of text.
What never happens here: a guess. Kernels and copies are read from the trace with their starts and ends; on a CPU, which
has none, operators are listed by the time spent in themselves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.profiler import ProfilerActivity, profile

from bench.speed.common.timing import settle

SHOWN, GAPS = 40, 8
_KINDS = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


@dataclass(frozen=True)
class Piece:
    """Something that the device did, in microseconds."""

    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Gap:
    """A time in which the device did nothing."""

    microseconds: float
    after: str
    before: str


def tell(step: Callable[[], object], device: torch.device) -> Iterator[str]:
    """Take one step, and say where its time went."""
    step()
    settle(device)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=activities) as found:
        step()
        settle(device)
    if device.type != "cuda":
        events = sorted(found.key_averages(), key=lambda event: -event.self_cpu_time_total)
        yield "a CPU has no kernels; operators by their own time"
        yield from (f"{e.self_cpu_time_total / 1000:>10.2f} ms {e.count:>6} x  {e.key}" for e in events[:SHOWN])
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        found.export_chrome_trace(str(path))
        yield from told(pieces_of(json.loads(path.read_text(encoding="utf-8"))["traceEvents"]))


def pieces_of(events: Sequence[dict[str, object]]) -> list[Piece]:
    """What the device did, in order, from the events of a trace."""
    kept = (event for event in events if event.get("ph") == "X" and event.get("cat") in _KINDS)
    pieces = (Piece(str(e["name"]), float(str(e["ts"])), float(str(e["ts"])) + float(str(e["dur"]))) for e in kept)
    return sorted(pieces, key=lambda piece: piece.start)


def gaps_of(pieces: Sequence[Piece]) -> list[Gap]:
    """Where nothing ran on any stream, the longest first."""
    found: list[Gap] = []
    last = pieces[0]
    for piece in pieces[1:]:
        if piece.start > last.end:
            found.append(Gap(piece.start - last.end, last.name, piece.name))
        if piece.end > last.end:
            last = piece
    return sorted(found, key=lambda gap: -gap.microseconds)


def told(pieces: Sequence[Piece]) -> Iterator[str]:
    """The kernels by time, then the gaps."""
    gaps = gaps_of(pieces)
    span = max(piece.end for piece in pieces) - pieces[0].start
    idle = sum(gap.microseconds for gap in gaps)
    yield f"{span / 1000:.2f} ms from the first kernel to the last, {len(pieces):,} of them; idle {idle / 1000:.2f} ms"
    time: Counter[str] = Counter()
    calls = Counter(piece.name for piece in pieces)
    for piece in pieces:
        time[piece.name] += piece.end - piece.start  # type: ignore[assignment]
    for name, spent in time.most_common(SHOWN):
        yield f"{spent / 1000:>10.2f} ms {100 * spent / span:>5.1f} % {calls[name]:>6} x  {name[:90]}"
    yield f"the longest of {len(gaps):,} gaps:"
    for gap in gaps[:GAPS]:
        yield f"{gap.microseconds:>10.0f} us  {gap.after[:45]} -> {gap.before[:45]}"

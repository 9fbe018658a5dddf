"""Runs commands as subprocesses, several in parallel, each with a log; all are stopped together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from unmask.core.errors import UserError
from unmask.core.io.folder_lock import wait_until_free

_POLL_SECONDS = 0.5
"""Seconds between two looks at the children."""


@dataclass(frozen=True, slots=True)
class Job:
    """One command, the folder that it makes, and its log."""

    args: tuple[str, ...]
    folder: Path

    @property
    def log_path(self) -> Path:
        """The log of the command."""
        return self.folder.parent / f"{self.folder.name}.log.txt"


@dataclass(frozen=True, slots=True)
class JobRunner:
    """Runs commands, `max_parallel` at a time."""

    max_parallel: int
    on_progress: Callable[[Sequence[Job]], None]
    """Is shown now and then, and whenever one has ended, which are at work."""
    running: dict[Job, subprocess.Popen[bytes]] = field(default_factory=dict)
    stopped: Event = field(default_factory=Event)

    def run(self, jobs: Iterable[Job]) -> None:
        """Run all of them; the first that fails stops the others, and its error is raised."""
        waiting = list(jobs)
        with ThreadPoolExecutor(max(min(self.max_parallel, len(waiting)), 1)) as pool:
            try:
                self._wait({pool.submit(self._run, child) for child in waiting})
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                self.stopped.set()
                # A job that is interrupted by the user may end its step and save; Ctrl-C may have reached it already.
                end = signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM
                for process in list(self.running.values()):
                    process.send_signal(end)
                raise

    def _wait(self, left: set[Future[None]]) -> None:
        while left:
            ended, left = wait(left, _POLL_SECONDS, FIRST_COMPLETED)
            for future in ended:
                future.result()
            self.on_progress(list(self.running))

    def _run(self, child: Job) -> None:
        child.folder.parent.mkdir(parents=True, exist_ok=True)
        wait_until_free(child.folder)
        threads = str(max(1, (os.cpu_count() or 1) // self.max_parallel))
        with child.log_path.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "unmask", *child.args],
                stdout=file,
                stderr=file,
                env={**os.environ, "OMP_NUM_THREADS": threads},
            )
            self.running[child] = process
            if self.stopped.is_set():  # it began while the others were being stopped
                process.terminate()
            code = process.wait()
        del self.running[child]
        if code:
            raise UserError(f"{_reason(child.log_path) or f'A run ended with {code}'} (the run: {child.log_path})")


def _reason(log: Path) -> str:
    """The error sentence of a failed run, if its log has one."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.removeprefix("unmask: ") for line in lines if line.startswith("unmask: ")]
    return errors[-1] if errors else ""

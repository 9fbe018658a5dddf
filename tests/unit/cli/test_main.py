"""The command line as a program: what it asks of the machine, and what a terminal that knows few letters is shown."""

import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unmask.cli import main


@pytest.fixture
def asked(monkeypatch):
    """What `main` has set when it calls a command, under the given surroundings."""

    def ask(**given):
        monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
        monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        found = {}
        monkeypatch.setattr(main, "app", lambda: found.update(os.environ))
        main.main()
        return found

    before = dict(os.environ)
    yield ask
    for name in os.environ.keys() - before.keys():
        del os.environ[name]


def test_threads_that_wait_leave_their_core_to_other_runs(asked):
    assert asked()["GOMP_SPINCOUNT"] == "1000"


def test_what_a_user_has_set_stays(asked):
    assert asked(GOMP_SPINCOUNT="7")["GOMP_SPINCOUNT"] == "7"
    assert "GOMP_SPINCOUNT" not in asked(OMP_WAIT_POLICY="ACTIVE")


def test_a_letter_that_a_terminal_cannot_show_is_its_number():
    words = [sys.executable, "-m", "unmask", "walk", "--rule", "similar", "--text", "今天"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    here, there = os.openpty()
    shown = []
    with subprocess.Popen(words, env=plain, stdout=there, stderr=subprocess.PIPE) as process:
        os.close(there)
        with contextlib.suppress(OSError):  # which is how a terminal ends
            while part := os.read(here, 4096):
                shown.append(part)
    os.close(here)
    assert process.returncode == 0
    assert rb"\u4eca\u5929" in b"".join(shown)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
@pytest.mark.parametrize("command", [["family"], ["walk", "--rule", "similar", "--text", "今天"], ["show", "bert"]])
def test_output_to_a_full_disk_is_a_sentence(command):
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "unmask", *command]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("unmask: The disk that the output is written to is full")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_where_nothing_at_all_can_be_said_the_exit_code_says_it():
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "unmask", "family"]
        assert subprocess.run(words, stdout=full, stderr=full, check=False).returncode == 2


def test_a_full_disk_under_a_file_is_not_that_of_the_output(monkeypatch, capfd):
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "runs/new")

    monkeypatch.setattr(main, "app", full)
    for name in ("TOKENIZERS_PARALLELISM", "GOMP_SPINCOUNT"):  # which `main` would leave behind in this process
        monkeypatch.setenv(name, "1")
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert capfd.readouterr().err.startswith("unmask: The disk under runs/new is full. What was finished is kept")

"""A process that has imported everything once, and forks a child for every command line that it is told.

Importing torch takes seconds, and these tests start the command line a hundred times. A child does what
`python -m unmask ...` does after its imports; a few tests start the real command to hold that the two agree.

It reads one JSON object a line: {"words": [...], "said": FILE, "environment": {...}, "folder": FOLDER} starts a child
and answers with its number; {"wait": NUMBER} answers with its exit code, {"poll": NUMBER} with that or null.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch
import torch._dynamo

import unmask.api.pretrain
from unmask.cli.main import main

ENDED: dict[int, int] = {}


def start(told: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    os.setsid()
    handle = os.open(told["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDONLY) if stream == 0 else handle, stream)
    os.environ.update(told["environment"])
    os.chdir(told["folder"])
    sys.argv = ["unmask", *told["words"]]
    code: object = 1
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def ended(child: int, options: int) -> int | None:
    if child not in ENDED:
        found, status = os.waitpid(child, options)
        if not found:
            return None
        ENDED[child] = os.waitstatus_to_exitcode(status)
    return ENDED[child]


def answer(told: dict[str, Any]) -> int | None:
    if "wait" in told:
        return ended(told["wait"], 0)
    if "poll" in told:
        return ended(told["poll"], os.WNOHANG)
    return start(told)


if __name__ == "__main__":
    torch.set_num_threads(1)
    assert unmask.api.pretrain
    assert torch._dynamo  # an optimizer imports it, which takes a second
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)

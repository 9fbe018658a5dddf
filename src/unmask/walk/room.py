"""Room to see a rule: a higher rate for texts that are too short to show it at its own.

What arrives: a task and one row. What leaves: the task, or a copy that may choose more of the row.
What never happens here: a change that goes unsaid. Whoever shows the result also shows the sentence that comes with it.

At 15 % a row of 18 tokens has a budget of 3. A run of several words, a phrase or a second T5 span never fits into it,
so a walk of one sentence would show single words under every rule; in training, rows of 512 tokens leave room enough.
"""

from __future__ import annotations

from dataclasses import replace

from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.select import Units
from unmask.corrupt.sentinels import Sentinels
from unmask.records import Example, Layer
from unmask.tasks import Task
from unmask.walk.wording import percent

ROOMY = 0.4
"""The rate that a rule is shown with when its own leaves no room."""
_ENOUGH = 10.0
"""Tokens of budget into which most runs fit."""


def with_room(task: Task, example: Example) -> tuple[Task, str]:
    """The task with room on this row, and what was changed; the same task and nothing if it has room already."""
    length = len(example.ids)
    match task.corrupt:
        case MaskOut(Units(_, _, rate) as select, _) if rate * length < min(_wanted(select, example), ROOMY * length):
            wider = replace(task.corrupt, select=replace(select, rate=ROOMY))
            return replace(task, corrupt=wider), _said(rate, length)
        case Sentinels(rate, mean) as part if rate * length < min(2 * mean, ROOMY * length):
            return replace(task, corrupt=replace(part, rate=ROOMY)), _said(rate, length)
    return task, ""


def _wanted(select: Units, example: Example) -> float:
    """The budget that shows a selection: room for runs, or for the longest phrase or entity of the row."""
    if len(select.run) > 1:
        return _ENOUGH
    return 0.0 if select.layer is Layer.WORD else float(example.units.spans(select.layer).lengths.max(initial=0))


def _said(rate: float, length: int) -> str:
    return (
        f"the rule's own rate is {percent(rate)}, only {rate * length:.1f} of these {length} tokens and too few to "
        f"show it; here {percent(ROOMY)} are chosen (--exact keeps {percent(rate)})"
    )

"""Room to see a rule: a higher rate for texts that are too short to show it at its own.

What arrives: a task and one row. What leaves: the task, or a copy that may choose more of the row.
What never happens here: a change that goes unsaid. Whoever shows the result also shows the sentence that comes with it.

At 15 % a row of 18 tokens has a budget of 3. A run of several words, a phrase or a second T5 span never fits into it,
so a walk of one sentence would show single words under every rule; in training, rows of 512 tokens leave room enough.
"""

from __future__ import annotations

from dataclasses import replace

from unmask.core.records import RowBatch, UnitKind
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.corrupt.selection import WholeUnits
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.tasks.recipe import Task
from unmask.walks.describe import percent_text

RAISED_RATE = 0.4
"""The rate that a rule is shown with when its own leaves no room."""
_ENOUGH_BUDGET = 10.0
"""Tokens of budget into which most runs fit."""


def with_raised_rate(task: Task, example: RowBatch) -> tuple[Task, str]:
    """The task with room on this row, and what was changed; the same task and nothing if it has room already."""
    length = len(example.ids)
    match task.corruption:
        case MaskTokens(WholeUnits(_, _, rate) as select, _) if rate * length < min(
            _needed_budget(select, example), RAISED_RATE * length
        ):
            wider = replace(task.corruption, select=replace(select, rate=RAISED_RATE))
            return replace(task, corruption=wider), _raised_rate_note(rate, length)
        case SpanCorruption(rate, mean) as part if rate * length < min(2 * mean, RAISED_RATE * length):
            return replace(task, corruption=replace(part, rate=RAISED_RATE)), _raised_rate_note(rate, length)
    return task, ""


def _needed_budget(select: WholeUnits, example: RowBatch) -> float:
    """The budget that shows a selection: room for runs, or for the longest phrase or entity of the row."""
    if len(select.run_lengths) > 1:
        return _ENOUGH_BUDGET
    return 0.0 if select.layer is UnitKind.WORD else float(example.units.spans(select.layer).lengths.max(initial=0))


def _raised_rate_note(rate: float, length: int) -> str:
    return (
        f"the rule's own rate is {percent_text(rate)}, only {rate * length:.1f} of these {length} tokens and too few to "
        f"show it; here {percent_text(RAISED_RATE)} are chosen (--exact keeps {percent_text(rate)})"
    )

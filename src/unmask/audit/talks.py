"""Measures of rows of conversations: how many turns they have, who speaks, and whether what is said of them is true.

What arrives: batches of a dialogue task. What leaves: findings.
What never happens here: looking at what is hidden; that is measured as for any other task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.audit.batch import Batch
from unmask.audit.finding import Numbers, Unit, never, ratio, share, told
from unmask.audit.measure import Said
from unmask.examples.dialogues import FACT, QUERY, REPLY, Dialogues
from unmask.ragged import row_sums


@dataclass(frozen=True, slots=True)
class Talks:
    """Real and fake rows, and whether the documents of a row bear it out."""

    dialogues: Dialogues

    def count(self, batch: Batch) -> Numbers:
        """Rows, fake ones, those that their documents contradict, turns, replies, tokens of nobody, odd rows."""
        example = batch.example
        fake = example.facts[FACT] != 0
        wrong = (batch.documents > 1) != fake
        ends = example.fixed & (np.arange(len(example.ids)) != np.repeat(example.rows[:-1], example.lengths))
        turns = row_sums(ends, example.rows)
        odd = (turns < 2) | (turns > self.dialogues.most)
        nobody = ~np.isin(example.segment, (QUERY, REPLY))
        sums = len(fake), fake.sum(), wrong.sum(), turns.sum(), (ends & (example.segment == REPLY)).sum(), nobody.sum()
        return np.array([*sums, odd.sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """As many fake rows as the rule says, and none that is called what it is not."""
        rows, fake, wrong, turns, replies, nobody, odd = total
        yield told("turns in a row", ratio(turns, rows), Unit.MEAN)
        yield told("turns of the one who replies", ratio(replies, turns), Unit.SHARE)
        yield share(f"{FACT}: rows with a fake turn", fake, rows, self.dialogues.fake, rows)
        yield never(f"{FACT}: rows their documents contradict", wrong)
        yield never("rows with too few or too many turns", odd)
        yield never("tokens that nobody speaks", nobody)

"""Measures of rows of conversations: how many turns they have, who speaks, and whether what is said of them is true.

What arrives: batches of a dialogue task. What leaves: findings.
What never happens here: looking at what is hidden; that is measured as for any other task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.audits.finding import FindingUnit, Numbers, informational, ratio, share_finding, violation
from unmask.audits.protocol import MeasureOutput
from unmask.audits.rows import AuditBatch
from unmask.core.ragged import row_sums
from unmask.data.input_formats.dialogues import QUERY, REPLY, REPLY_FACT, Dialogues


@dataclass(frozen=True, slots=True)
class DialogueCheck:
    """Real and fake rows, and whether the documents of a row bear it out."""

    dialogues: Dialogues

    def count(self, batch: AuditBatch) -> Numbers:
        """Rows, fake ones, those that their documents contradict, turns, replies, tokens of nobody, odd rows."""
        example = batch.example
        fake = example.facts[REPLY_FACT] != 0
        wrong = (batch.num_documents > 1) != fake
        ends = example.protected & (np.arange(len(example.ids)) != np.repeat(example.rows[:-1], example.lengths))
        turns = row_sums(ends, example.rows)
        odd = (turns < 2) | (turns > self.dialogues.max_turns)
        nobody = ~np.isin(example.segment, (QUERY, REPLY))
        sums = len(fake), fake.sum(), wrong.sum(), turns.sum(), (ends & (example.segment == REPLY)).sum(), nobody.sum()
        return np.array([*sums, odd.sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """As many fake rows as the rule says, and none that is called what it is not."""
        rows, fake, wrong, turns, replies, nobody, odd = total
        yield informational("turns in a row", ratio(turns, rows), FindingUnit.MEAN)
        yield informational("turns of the one who replies", ratio(replies, turns), FindingUnit.SHARE)
        yield share_finding(f"{REPLY_FACT}: rows with a fake turn", fake, rows, self.dialogues.fake_fraction, rows)
        yield violation(f"{REPLY_FACT}: rows their documents contradict", wrong)
        yield violation("rows with too few or too many turns", odd)
        yield violation("tokens that nobody speaks", nobody)

"""Several labels for a text or a pair of texts; perhaps one, perhaps none.

What arrives: labels as written. What leaves: `Labels`, which knows them by number.
What never happens here: a label that training has never seen. Such a row is refused with its line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.errors import InputError
from unmask.nets.reading import ReadOut
from unmask.records import Bits
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.encode import Room, encode
from unmask.tune.exercise import Exercise, RowLabels
from unmask.tune.judge import Tick
from unmask.tune.label_rows import LabelQuestion
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.outputs.classify import in_order, some_of
from unmask.tune.sheet import Sheet
from unmask.tune.wish import NO_WISH, Wish

if TYPE_CHECKING:
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class LabelsAnswer:
    """The labels that are likelier than not, the likeliest first, and how likely each is."""

    said: tuple[str, ...]
    probabilities: tuple[float, ...]

    def line(self) -> dict[str, object]:
        """The labels, and how sure the network is of each."""
        return {"said": list(self.said), "probabilities": [round(one, 6) for one in self.probabilities]}


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels for each row; each is said or not, whatever the others are."""

    labels: tuple[str, ...]
    """In the order of their numbers."""
    name: str = "labels"
    read: ReadOut = ReadOut.FIRST
    kind: ClassVar[Kind] = Kind.LABELS

    @staticmethod
    def learn(sheet: Sheet[LabelQuestion], wish: Wish = NO_WISH) -> Labels:
        """The labels of a training file."""
        labels = in_order({label for question in sheet.questions for label in question.truth})
        if len(labels) < 2:
            held = f"only the label {labels[0]!r}" if labels else "no label at all"
            raise InputError(f"{sheet.name}: {len(sheet):,} rows have {held}. Several labels means at least two.")
        return Labels(labels, read=wish.read)

    @property
    def objective(self) -> Tick:
        """What a network learns to say."""
        return Tick(len(self.labels), self.name, read=self.read)

    def told(self, sheet: Sheet[LabelQuestion]) -> Iterator[str]:
        """The labels, how often they occur, and how many a row has."""
        counts = Counter(label for question in sheet.questions for label in question.truth)
        often = ", ".join(f"{label} ({count / len(sheet):.0%})" for label, count in counts.most_common(6))
        rest = f", and {len(self.labels) - 6} more" if len(self.labels) > 6 else ""
        none = sum(not question.truth for question in sheet.questions) / len(sheet)
        yield f"{len(self.labels)} labels: {often}{rest}"
        yield f"{counts.total() / len(sheet):.2g} labels a row on average; {none:.0%} of the rows have none"

    def check(self, sheet: Sheet[LabelQuestion]) -> None:
        """Refuse a label that training has never seen."""
        for question, where in zip(sheet.questions, sheet.where, strict=True):
            strange = next((label for label in question.truth if label not in self.labels), "")
            if strange:
                raise InputError(
                    f"{where}: the label {strange!r} does not occur in the training file, which has "
                    f"{some_of(self.labels)}. Correct the line, or add rows with this label to the training file."
                )

    def bits(self, sets: Sequence[Sequence[str]]) -> Bits:
        """One bit for each row and label: 1 where the row has it."""
        number = {label: place for place, label in enumerate(self.labels)}
        value_NC = np.zeros((len(sets), len(self.labels)), dtype=np.uint8)
        for row, held in enumerate(sets):
            value_NC[row, [number[label] for label in held]] = 1
        return value_NC

    def lay_out(self, sheet: Sheet[LabelQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent) -> Exercise:
        """One row of tokens for each question."""
        rows = encode([question.texts for question in sheet.questions], tokenizer, room, sheet.where, tick)
        if not all(question.known for question in sheet.questions):
            return Exercise(rows)
        return Exercise(rows, RowLabels(self.name, self.bits([question.truth for question in sheet.questions])))

    def answer(self, learner: Learner, sheet: Sheet[LabelQuestion], exercise: Exercise) -> Sequence[LabelsAnswer]:
        """The labels of each row that are likelier than not."""
        from unmask.tune.say import row_scores

        scores_NC = row_scores(learner, self.name, exercise).astype(np.float64)
        likely_NC = np.exp(-np.logaddexp(0, -scores_NC))
        return [self._said(row) for row in likely_NC.tolist()]

    def _said(self, likely: Sequence[float]) -> LabelsAnswer:
        found = sorted(((share, place) for place, share in enumerate(likely) if share >= 0.5), key=lambda one: -one[0])
        return LabelsAnswer(tuple(self.labels[place] for _, place in found), tuple(share for share, _ in found))

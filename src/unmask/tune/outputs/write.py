"""A new text for each text: a translation, a headline, a sentence in other words.

What arrives: sources and the texts to be written for them. What leaves: `Write`, and texts that a network wrote.
What never happens here: a source that has read what is to be written. Behind it (version 2) only what comes later sees
it, and a decoder (version 1) keeps it to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.objectives import writing
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.encode import Room
from unmask.tune.exercise import Exercise
from unmask.tune.manner import Manner, Version
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.sheet import Sheet
from unmask.tune.text_rows import Texts, encode_texts
from unmask.tune.texts import TextQuestion
from unmask.tune.wish import NO_WISH, Wish

if TYPE_CHECKING:
    from unmask.train.learner import Learner

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """What was written for a source."""

    said: str
    score: float
    """The log-probability of the text, by which texts were compared."""

    def line(self) -> dict[str, object]:
        """The text, and how likely it is."""
        return {"said": self.said, "score": round(self.score, 6)}


@dataclass(frozen=True, slots=True)
class Write:
    """A text for each source."""

    manner: Manner = Manner()
    name: str = "write"
    kind: ClassVar[Kind] = Kind.WRITE

    @staticmethod
    def learn(sheet: Sheet[TextQuestion], wish: Wish = NO_WISH) -> Write:
        """As the user wishes; a training file decides nothing."""
        return Write(wish.manner)

    @property
    def objective(self) -> writing.Write | writing.WriteAfter:
        """What a network learns to write."""
        how = self.manner
        if how.version is Version.BEHIND:
            return writing.WriteAfter(how.smoothing, name=self.name)
        return writing.Write(how.search.most, how.depth, how.smoothing, name=self.name)

    def told(self, sheet: Sheet[TextQuestion]) -> Iterator[str]:
        """Who writes, and how much."""
        yield str(self.manner)

    def check(self, sheet: Sheet[TextQuestion]) -> None:
        """Every text can be written."""

    def lay_out(self, sheet: Sheet[TextQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent) -> Exercise:
        """One row of tokens for each source; in version 2 with the text behind it."""
        behind = self.manner.version is Version.BEHIND
        return encode_texts(sheet.questions, tokenizer, room, self.manner.search.most, behind, tick)

    def answer(self, learner: Learner, sheet: Sheet[TextQuestion], exercise: Exercise) -> Sequence[TextAnswer]:
        """The best text for each source."""
        from unmask.nets.batch import collate
        from unmask.records import Instance
        from unmask.use.spell import spell
        from unmask.use.write import write

        texts, device = exercise.truth, next(learner.parameters()).device
        assert isinstance(texts, Texts), "the exercise was laid out by this output"
        found = [TextAnswer("", 0.0)] * len(sheet)
        for some in Exercise(texts.sources).by_length(_AT_ONCE):
            tokens = collate(Instance(texts.sources.take(some), ()), device).tokens
            written = write(learner, self.name, tokens, texts.tokenizer.vocab, self.manner.search)
            for number, one in zip(some.tolist(), written, strict=True):
                found[number] = TextAnswer(spell(texts.tokenizer, one.ids), one.score)
        return found

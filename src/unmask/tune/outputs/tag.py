"""A class for each word: entities, parts of speech, words of a text without spaces.

What arrives: tags as written. What leaves: `Tag`, which knows them by number and knows how they spell entities.
What never happens here: a sentence with more or fewer tags than words, or a tag of a type that training never saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.errors import InputError
from unmask.ragged import offsets
from unmask.records import Ints
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.encode import Room
from unmask.tune.exercise import Exercise, TokenTags
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.outputs.classify import some_of
from unmask.tune.sheet import Sheet, Texts
from unmask.tune.tagging import SayTags, TagQuestion
from unmask.tune.tagging_scheme import Scheme, complete, legal, recognise, stretches
from unmask.tune.tagging_windows import WordPlaces, lay_out_words
from unmask.tune.wish import NO_WISH, Wish

if TYPE_CHECKING:
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of words with a type: where it stands in the file (its end not counted in), and its text."""

    start: int
    end: int
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class TagAnswer:
    """The tag of each word, and the entities that tags spell; free tags spell none."""

    said: Texts
    entities: tuple[Entity, ...] = ()
    spells: bool = False
    """Whether the tags can spell entities."""

    def line(self) -> dict[str, object]:
        """The tags, and the entities if there could be some."""
        found = [{"start": e.start, "end": e.end, "type": e.type, "text": e.text} for e in self.entities]
        return {"said": self.said, "entities": found} if self.spells else {"said": self.said}


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag for each word."""

    labels: tuple[str, ...]
    """In the order of their numbers."""
    scheme: Scheme
    crf: bool = False
    """Whether the tags of a sentence are chosen together, by a conditional random field."""
    legal: bool = False
    """Whether only tags that may follow each other are said. A CRF says no others."""
    name: str = "tag"
    kind: ClassVar[Kind] = Kind.TAG

    @staticmethod
    def learn(sheet: Sheet[TagQuestion], wish: Wish = NO_WISH) -> Tag:
        """The tags of a training file, with those that its types lack by chance."""
        tags = set(chain.from_iterable(question.truth for question in sheet.questions))
        if len(tags) < 2:
            raise InputError(f"{sheet.name}: all words have the tag {min(tags)!r}. A choice needs at least two tags.")
        scheme = recognise([question.truth for question in sheet.questions], sheet.where)
        return Tag(complete(tags, scheme), scheme, wish.crf, wish.legal)

    @property
    def objective(self) -> SayTags:
        """What a network learns to say."""
        return SayTags(self.labels, self.scheme, self.crf, self.name)

    @property
    def spells(self) -> bool:
        """Whether the tags spell entities."""
        return self.scheme is not Scheme.FREE

    def told(self, sheet: Sheet[TagQuestion]) -> Iterator[str]:
        """The scheme and the tags; what was added to them, and how often the file breaks its own rules."""
        words = sum(len(question.words) for question in sheet.questions)
        how = ", chosen together by a CRF" if self.crf else ", none that may not follow another" if self.legal else ""
        yield f"{words:,} words with {self._tags}{how}"
        seen = set(chain.from_iterable(question.truth for question in sheet.questions))
        added = [label for label in self.labels if label not in seen]
        if added:
            yield f"{some_of(added)}: not among them, but added, as other tags of the same type are"
        broken = self._broken(sheet)
        if broken:
            yield (
                f"note: sentences that break the rules of {self.scheme}: {len(broken):,}, the first at {broken[0]}; "
                "they are learned as they stand"
            )

    @property
    def _tags(self) -> str:
        if not self.spells:
            return f"{len(self.labels)} free tags: {some_of(self.labels)}"
        types = dict.fromkeys(label[2:] for label in self.labels if label[1:])
        return f"{self.scheme} tags of {len(types)} {'types' if len(types) != 1 else 'type'}: {some_of(list(types))}"

    def _broken(self, sheet: Sheet[TagQuestion]) -> list[str]:
        """Where the sentences stand that the rules of the scheme forbid."""
        start, step, end = legal(self.labels, self.scheme)
        numbers, begin = self.numbers(sheet), _begins(sheet)
        wrong = np.append(~step[numbers[:-1], numbers[1:]], False)
        wrong[begin[1:] - 1] = ~end[numbers[begin[1:] - 1]]  # a step from one sentence to the next is none
        wrong[begin[:-1]] |= ~start[numbers[begin[:-1]]]
        rows = np.unique(np.searchsorted(begin, np.flatnonzero(wrong), side="right") - 1)
        return [sheet.where[row] for row in rows.tolist()]

    def check(self, sheet: Sheet[TagQuestion]) -> None:
        """Refuse a tag that is not one of those that were learned."""
        known = frozenset(self.labels)
        for question, where in zip(sheet.questions, sheet.where, strict=True):
            for number, tag in enumerate(question.truth):
                if tag not in known:
                    raise InputError(
                        f"{where}: word {number + 1}, {question.words[number]!r}, has the tag {tag!r}, which "
                        f"the training file does not have; it has {some_of(self.labels)}. Correct the tag, or add "
                        "sentences with it to the training file."
                    )

    def numbers(self, sheet: Sheet[TagQuestion]) -> Ints:
        """The number of each word's tag, sentence after sentence."""
        number = {label: place for place, label in enumerate(self.labels)}
        tags = chain.from_iterable(question.truth for question in sheet.questions)
        return np.fromiter((number[tag] for tag in tags), np.int64)

    def lay_out(self, sheet: Sheet[TagQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent) -> Exercise:
        """One row of tokens for each sentence, several for a long one; each word is tagged in one of them."""
        exercise, places = lay_out_words(sheet, tokenizer, room)
        tick(len(sheet))
        if not all(question.truth for question in sheet.questions):
            return exercise
        tags = TokenTags(self.name, places.begin, places.place, self.numbers(sheet))
        return replace(exercise, truth=replace(places, told=(tags,)))

    def answer(self, learner: Learner, sheet: Sheet[TagQuestion], exercise: Exercise) -> Sequence[TagAnswer]:
        """A tag for each word. The scores of all windows are brought together before the tags are chosen."""
        from unmask.tune.say import token_scores
        from unmask.tune.tagging_choice import best_together, legal_steps

        places = exercise.truth
        assert isinstance(places, WordPlaces), "the exercise is one of words"
        scores_WC = token_scores(learner, self.name, exercise)[places.among(exercise.rows.rows)]
        begin = _begins(sheet)
        if self.crf or self.legal:
            allowed = legal(self.labels, self.scheme)
            chosen = best_together(scores_WC, begin, legal_steps(learner.heads[self.name], allowed))
        else:
            chosen = scores_WC.argmax(axis=1)
        said = [tuple(self.labels[number] for number in row.tolist()) for row in np.split(chosen, begin[1:-1])]
        return [self._answer(question, tags) for question, tags in zip(sheet.questions, said, strict=True)]

    def _answer(self, question: TagQuestion, tags: Texts) -> TagAnswer:
        if not self.spells:
            return TagAnswer(tags)
        found = (
            Entity(*question.place(start, end), kind, question.text(start, end)) for kind, start, end in stretches(tags)
        )
        return TagAnswer(tags, tuple(found), spells=True)


def _begins(sheet: Sheet[TagQuestion]) -> Ints:
    """Offsets of the sentences over all words."""
    return offsets(np.array([len(question.words) for question in sheet.questions], dtype=np.int64))

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

from unmask.core.errors import InputError
from unmask.core.ragged import offsets
from unmask.core.records import Ints
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import ExampleSet, Texts
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset, TokenLabelColumn
from unmask.finetuning.data.tagging.schemes import TagScheme, all_tags, allowed_transitions, detect_scheme, entities
from unmask.finetuning.data.tagging.sentences import TaggedSentence, Tagging
from unmask.finetuning.data.tagging.windows import WordPositions, encode_words
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.classification import list_labels
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class PredictedEntity:
    """A stretch of words with a type: where it stands in the file (its end not counted in), and its text."""

    start: int
    end: int
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class TagPrediction:
    """The tag of each word, and the entities that tags spell; free tags spell none."""

    prediction: Texts
    entities: tuple[PredictedEntity, ...] = ()
    spells_entities: bool = False
    """Whether the tags can spell entities."""

    def to_json(self) -> dict[str, object]:
        """The tags, and the entities if there could be some."""
        found = [{"start": e.start, "end": e.end, "type": e.type, "text": e.text} for e in self.entities]
        return {"prediction": self.prediction, "entities": found} if self.spells_entities else {"prediction": self.prediction}


@dataclass(frozen=True, slots=True)
class TaggingTask:
    """A tag for each word."""

    labels: tuple[str, ...]
    """In the order of their numbers."""
    scheme: TagScheme
    crf: bool = False
    """Whether the tags of a sentence are chosen together, by a conditional random field."""
    constrained: bool = False
    """Whether only tags that may follow each other are said. A CRF says no others."""
    name: str = "tag"
    task_type: ClassVar[TaskType] = TaskType.TAGGING

    @staticmethod
    def from_examples(sheet: ExampleSet[TaggedSentence], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> TaggingTask:
        """The tags of a training file, with those that its types lack by chance."""
        tags = set(chain.from_iterable(question.truth for question in sheet.examples))
        if len(tags) < 2:
            raise InputError(f"{sheet.name}: all words have the tag {min(tags)!r}. A choice needs at least two tags.")
        scheme = detect_scheme([question.truth for question in sheet.examples], sheet.source_lines)
        return TaggingTask(all_tags(tags, scheme), scheme, options.crf, options.constrained_tags)

    @property
    def objective(self) -> Tagging:
        """What a network learns to say."""
        return Tagging(self.labels, self.scheme, self.crf, self.name)

    @property
    def spells_entities(self) -> bool:
        """Whether the tags spell entities."""
        return self.scheme is not TagScheme.FREE

    def notes(self, sheet: ExampleSet[TaggedSentence]) -> Iterator[str]:
        """The scheme and the tags; what was added to them, and how often the file breaks its own rules."""
        words = sum(len(question.words) for question in sheet.examples)
        how = (
            ", chosen together by a CRF"
            if self.crf
            else ", none that may not follow another"
            if self.constrained
            else ""
        )
        yield f"{words:,} words with {self._tags}{how}"
        seen = set(chain.from_iterable(question.truth for question in sheet.examples))
        added = [label for label in self.labels if label not in seen]
        if added:
            yield f"{list_labels(added)}: not among them, but added, as other tags of the same type are"
        broken = self._invalid_sentences(sheet)
        if broken:
            yield (
                f"note: sentences that break the rules of {self.scheme}: {len(broken):,}, the first at {broken[0]}; "
                "they are learned as they stand"
            )

    @property
    def _tags(self) -> str:
        if not self.spells_entities:
            return f"{len(self.labels)} free tags: {list_labels(self.labels)}"
        types = dict.fromkeys(label[2:] for label in self.labels if label[1:])
        return (
            f"{self.scheme} tags of {len(types)} {'types' if len(types) != 1 else 'type'}: {list_labels(list(types))}"
        )

    def _invalid_sentences(self, sheet: ExampleSet[TaggedSentence]) -> list[str]:
        """Where the sentences stand that the rules of the scheme forbid."""
        start, step, end = allowed_transitions(self.labels, self.scheme)
        numbers, begin = self.tag_indices(sheet), _begins(sheet)
        wrong = np.append(~step[numbers[:-1], numbers[1:]], False)
        wrong[begin[1:] - 1] = ~end[numbers[begin[1:] - 1]]  # a step from one sentence to the next is none
        wrong[begin[:-1]] |= ~start[numbers[begin[:-1]]]
        rows = np.unique(np.searchsorted(begin, np.flatnonzero(wrong), side="right") - 1)
        return [sheet.source_lines[row] for row in rows.tolist()]

    def check(self, sheet: ExampleSet[TaggedSentence]) -> None:
        """Refuse a tag that is not one of those that were learned."""
        known = frozenset(self.labels)
        for question, where in zip(sheet.examples, sheet.source_lines, strict=True):
            for number, tag in enumerate(question.truth):
                if tag not in known:
                    raise InputError(
                        f"{where}: word {number + 1}, {question.words[number]!r}, has the tag {tag!r}, which "
                        f"the training file does not have; it has {list_labels(self.labels)}. Correct the tag, or add "
                        "sentences with it to the training file."
                    )

    def tag_indices(self, sheet: ExampleSet[TaggedSentence]) -> Ints:
        """The number of each word's tag, sentence after sentence."""
        number = {label: place for place, label in enumerate(self.labels)}
        tags = chain.from_iterable(question.truth for question in sheet.examples)
        return np.fromiter((number[tag] for tag in tags), np.int64)

    def encode(
        self,
        sheet: ExampleSet[TaggedSentence],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each sentence, several for a long one; each word is tagged in one of them."""
        exercise, places = encode_words(sheet, tokenizer, limits)
        tick(len(sheet))
        if not all(question.truth for question in sheet.examples):
            return exercise
        tags = TokenLabelColumn(self.name, places.begin, places.position, self.tag_indices(sheet))
        return replace(exercise, targets=replace(places, labels=(tags,)))

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[TaggedSentence], dataset: EncodedDataset
    ) -> Sequence[TagPrediction]:
        """A tag for each word. The scores of all windows are brought together before the tags are chosen."""
        from unmask.finetuning.data.tagging.decode import constrained_transitions, viterbi_tags
        from unmask.finetuning.logits import token_logits

        places = dataset.targets
        assert isinstance(places, WordPositions), "the exercise is one of words"
        scores_WC = token_logits(learner, self.name, dataset)[places.token_indices(dataset.rows.offsets)]
        begin = _begins(sheet)
        if self.crf or self.constrained:
            allowed = allowed_transitions(self.labels, self.scheme)
            chosen = viterbi_tags(scores_WC, begin, constrained_transitions(learner.heads[self.name], allowed))
        else:
            chosen = scores_WC.argmax(axis=1)
        said = [tuple(self.labels[number] for number in row.tolist()) for row in np.split(chosen, begin[1:-1])]
        return [self._to_prediction(question, tags) for question, tags in zip(sheet.examples, said, strict=True)]

    def _to_prediction(self, question: TaggedSentence, tags: Texts) -> TagPrediction:
        if not self.spells_entities:
            return TagPrediction(tags)
        found = (
            PredictedEntity(*question.source_span(start, end), kind, question.text(start, end))
            for kind, start, end in entities(tags)
        )
        return TagPrediction(tags, tuple(found), spells_entities=True)


def _begins(sheet: ExampleSet[TaggedSentence]) -> Ints:
    """Offsets of the sentences over all words."""
    return offsets(np.array([len(question.words) for question in sheet.examples], dtype=np.int64))

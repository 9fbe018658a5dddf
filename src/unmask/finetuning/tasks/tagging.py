"""Token classification: a tag for each word, such as entities, parts of speech or word segmentation."""

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
from unmask.finetuning.data.encode import LengthLimits, Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset, TokenLabelColumn
from unmask.finetuning.data.tagging.schemes import TagScheme, all_tags, allowed_transitions, detect_scheme, entities
from unmask.finetuning.data.tagging.sentences import TaggedSentence, Tagging
from unmask.finetuning.data.tagging.windows import WordPositions, encode_words
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.classification import list_labels
from unmask.finetuning.tasks.protocol import TaskType

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class PredictedEntity:
    """An entity: its type, its position in the file (end exclusive) and its text."""

    start: int
    end: int
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class TagPrediction:
    """The tag of each word, and the entities of these tags."""

    prediction: Texts
    entities: tuple[PredictedEntity, ...] = ()
    spells_entities: bool = False
    """Whether the scheme has entities."""

    def to_json(self) -> dict[str, object]:
        """The tags, and the entities if the scheme has them."""
        found = [{"start": e.start, "end": e.end, "type": e.type, "text": e.text} for e in self.entities]
        return (
            {"prediction": self.prediction, "entities": found}
            if self.spells_entities
            else {"prediction": self.prediction}
        )


@dataclass(frozen=True, slots=True)
class TaggingTask:
    """A tag for each word."""

    labels: tuple[str, ...]
    """In the order of their indices."""
    scheme: TagScheme
    crf: bool = False
    """Whether a conditional random field scores the tags of a sentence together."""
    constrained: bool = False
    """Whether decoding allows valid transitions only. A CRF always does."""
    name: str = "tag"
    task_type: ClassVar[TaskType] = TaskType.TAGGING

    @staticmethod
    def from_examples(examples: ExampleSet[TaggedSentence], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> TaggingTask:
        """The tags of a training file, completed for its entity types."""
        tags = set(chain.from_iterable(example.truth for example in examples.examples))
        if len(tags) < 2:
            raise InputError(f"{examples.name}: all words have the tag {min(tags)!r}. Tagging needs at least two tags.")
        scheme = detect_scheme([example.truth for example in examples.examples], examples.source_lines)
        return TaggingTask(all_tags(tags, scheme), scheme, options.crf, options.constrained_tags)

    @property
    def objective(self) -> Tagging:
        """The training objective."""
        return Tagging(self.labels, self.scheme, self.crf, self.name)

    @property
    def spells_entities(self) -> bool:
        """Whether the scheme has entities."""
        return self.scheme is not TagScheme.FREE

    def notes(self, examples: ExampleSet[TaggedSentence]) -> Iterator[str]:
        """The scheme and the tags, added tags, and sentences that break the rules of the scheme."""
        words = sum(len(example.words) for example in examples.examples)
        how = ", decoded by a CRF" if self.crf else ", decoded with valid transitions only" if self.constrained else ""
        yield f"{words:,} words with {self._tags}{how}"
        seen = set(chain.from_iterable(example.truth for example in examples.examples))
        added = [label for label in self.labels if label not in seen]
        if added:
            yield f"{list_labels(added)}: not in the file, but added for their entity type"
        broken = self._invalid_sentences(examples)
        if broken:
            yield (
                f"note: sentences that break the rules of {self.scheme}: {len(broken):,}, the first at {broken[0]}; "
                "they are trained on as they are"
            )

    @property
    def _tags(self) -> str:
        if not self.spells_entities:
            return f"{len(self.labels)} free tags: {list_labels(self.labels)}"
        types = dict.fromkeys(label[2:] for label in self.labels if label[1:])
        return (
            f"{self.scheme} tags of {len(types)} {'types' if len(types) != 1 else 'type'}: {list_labels(list(types))}"
        )

    def _invalid_sentences(self, examples: ExampleSet[TaggedSentence]) -> list[str]:
        """The lines of sentences that break the rules of the scheme."""
        start, step, end = allowed_transitions(self.labels, self.scheme)
        numbers, begin = self.tag_indices(examples), _begins(examples)
        wrong = np.append(~step[numbers[:-1], numbers[1:]], False)
        wrong[begin[1:] - 1] = ~end[numbers[begin[1:] - 1]]  # transitions between sentences do not count
        wrong[begin[:-1]] |= ~start[numbers[begin[:-1]]]
        rows = np.unique(np.searchsorted(begin, np.flatnonzero(wrong), side="right") - 1)
        return [examples.source_lines[row] for row in rows.tolist()]

    def check(self, examples: ExampleSet[TaggedSentence]) -> None:
        """Refuse a tag that the training file does not have."""
        known = frozenset(self.labels)
        for example, where in zip(examples.examples, examples.source_lines, strict=True):
            for number, tag in enumerate(example.truth):
                if tag not in known:
                    raise InputError(
                        f"{where}: word {number + 1}, {example.words[number]!r}, has the tag {tag!r}, which "
                        f"the training file does not have; it has {list_labels(self.labels)}. Correct the tag, or add "
                        "sentences with it to the training file."
                    )

    def tag_indices(self, examples: ExampleSet[TaggedSentence]) -> Ints:
        """The tag index of each word, sentence after sentence."""
        number = {label: place for place, label in enumerate(self.labels)}
        tags = chain.from_iterable(example.truth for example in examples.examples)
        return np.fromiter((number[tag] for tag in tags), np.int64)

    def encode(
        self,
        examples: ExampleSet[TaggedSentence],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens per sentence, several windows for a long one; each word is labelled in one of them."""
        dataset, places = encode_words(examples, tokenizer, limits)
        tick(len(examples))
        if not all(example.truth for example in examples.examples):
            return dataset
        tags = TokenLabelColumn(self.name, places.begin, places.position, self.tag_indices(examples))
        return replace(dataset, targets=replace(places, labels=(tags,)))

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[TaggedSentence], dataset: EncodedDataset
    ) -> Sequence[TagPrediction]:
        """A tag for each word, decoded over the logits of all windows of a sentence."""
        from unmask.finetuning.logits import constrained_transitions, token_logits, viterbi_tags

        places = dataset.targets
        assert isinstance(places, WordPositions), "the dataset was encoded by this task"
        scores_WC = token_logits(model, self.name, dataset)[places.token_indices(dataset.rows.offsets)]
        begin = _begins(examples)
        if self.crf or self.constrained:
            allowed = allowed_transitions(self.labels, self.scheme)
            chosen = viterbi_tags(scores_WC, begin, constrained_transitions(model.heads[self.name], allowed))
        else:
            chosen = scores_WC.argmax(axis=1)
        predicted = [tuple(self.labels[number] for number in row.tolist()) for row in np.split(chosen, begin[1:-1])]
        return [self._to_prediction(example, tags) for example, tags in zip(examples.examples, predicted, strict=True)]

    def _to_prediction(self, example: TaggedSentence, tags: Texts) -> TagPrediction:
        if not self.spells_entities:
            return TagPrediction(tags)
        found = (
            PredictedEntity(*example.source_span(start, end), kind, example.text(start, end))
            for kind, start, end in entities(tags)
        )
        return TagPrediction(tags, tuple(found), spells_entities=True)


def _begins(examples: ExampleSet[TaggedSentence]) -> Ints:
    """Offsets of the sentences over all words."""
    return offsets(np.array([len(example.words) for example in examples.examples], dtype=np.int64))

"""A new text for each text: a translation, a headline, a sentence in other words.

What arrives: sources and the texts to be written for them. What leaves: `Write`, and texts that a network wrote.
What never happens here: a source that has read what is to be written. Behind it (version 2) only what comes later sees
it, and a decoder (version 1) keeps it to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.inference import DecoderKind, GenerationConfig
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.data.seq2seq import Seq2SeqExample
from unmask.finetuning.data.seq2seq_encode import TargetTexts, encode_seq2seq
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress
from unmask.objectives import seq2seq

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel

_BATCH_SIZE = 64


@dataclass(frozen=True, slots=True)
class TextPrediction:
    """What was written for a source."""

    prediction: str
    score: float
    """The log-probability of the text, by which texts were compared."""

    def to_json(self) -> dict[str, object]:
        """The text, and how likely it is."""
        return {"prediction": self.prediction, "score": round(self.score, 6)}


@dataclass(frozen=True, slots=True)
class GenerationTask:
    """A text for each source."""

    generation: GenerationConfig = GenerationConfig()
    name: str = "write"
    task_type: ClassVar[TaskType] = TaskType.GENERATION

    @staticmethod
    def from_examples(sheet: ExampleSet[Seq2SeqExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> GenerationTask:
        """As the user wishes; a training file decides nothing."""
        return GenerationTask(options.generation)

    @property
    def objective(self) -> seq2seq.Seq2SeqObjective | seq2seq.PrefixLMObjective:
        """What a network learns to write."""
        how = self.generation
        if how.decoder is DecoderKind.PREFIX_LM:
            return seq2seq.PrefixLMObjective(how.label_smoothing, name=self.name)
        return seq2seq.Seq2SeqObjective(how.beam_search.max_new_tokens, how.depth, how.label_smoothing, name=self.name)

    def notes(self, sheet: ExampleSet[Seq2SeqExample]) -> Iterator[str]:
        """Who writes, and how much."""
        yield str(self.generation)

    def check(self, sheet: ExampleSet[Seq2SeqExample]) -> None:
        """Every text can be written."""

    def encode(
        self,
        sheet: ExampleSet[Seq2SeqExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each source; in version 2 with the text behind it."""
        behind = self.generation.decoder is DecoderKind.PREFIX_LM
        return encode_seq2seq(
            sheet.examples, tokenizer, limits, self.generation.beam_search.max_new_tokens, behind, tick
        )

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[Seq2SeqExample], dataset: EncodedDataset
    ) -> Sequence[TextPrediction]:
        """The best text for each source."""
        from unmask.core.records import InputsAndTargets
        from unmask.inference.detokenize import decode
        from unmask.inference.generate import generate
        from unmask.nets.batch.batch import collate

        texts, device = dataset.targets, next(learner.parameters()).device
        assert isinstance(texts, TargetTexts), "the exercise was laid out by this output"
        found = [TextPrediction("", 0.0)] * len(sheet)
        for some in EncodedDataset(texts.sources).batches_by_length(_BATCH_SIZE):
            tokens = collate(InputsAndTargets(texts.sources.take(some), ()), device).tokens
            written = generate(learner, self.name, tokens, texts.tokenizer.vocab, self.generation.beam_search)
            for number, one in zip(some.tolist(), written, strict=True):
                found[number] = TextPrediction(decode(texts.tokenizer, one.ids), one.score)
        return found

"""Text generation: a new text for each source text, such as a translation, a headline or a paraphrase.

With the prefix LM (`--decoder encoder`) the target follows the source in one row; with a new decoder
(`--decoder new`) it attends to the encoder by cross-attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.inference import DecoderKind, GenerationConfig
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.data.seq2seq import Seq2SeqExample, TargetTexts, encode_seq2seq
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.objectives import seq2seq

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel

_BATCH_SIZE = 64


@dataclass(frozen=True, slots=True)
class TextPrediction:
    """The text generated for a source."""

    prediction: str
    score: float
    """Its length-normalized log-probability."""

    def to_json(self) -> dict[str, object]:
        """The text and its score."""
        return {"prediction": self.prediction, "score": round(self.score, 6)}


@dataclass(frozen=True, slots=True)
class GenerationTask:
    """A text for each source."""

    generation: GenerationConfig = GenerationConfig()
    name: str = "write"
    task_type: ClassVar[TaskType] = TaskType.GENERATION

    @staticmethod
    def from_examples(
        examples: ExampleSet[Seq2SeqExample], options: TaskOptions = DEFAULT_TASK_OPTIONS
    ) -> GenerationTask:
        """The task; the training file decides nothing."""
        return GenerationTask(options.generation)

    @property
    def objective(self) -> seq2seq.Seq2SeqObjective | seq2seq.PrefixLMObjective:
        """The training objective: a prefix LM or a new decoder."""
        how = self.generation
        if how.decoder is DecoderKind.PREFIX_LM:
            return seq2seq.PrefixLMObjective(how.label_smoothing, name=self.name)
        return seq2seq.Seq2SeqObjective(how.beam_search.max_new_tokens, how.depth, how.label_smoothing, name=self.name)

    def notes(self, examples: ExampleSet[Seq2SeqExample]) -> Iterator[str]:
        """The decoder and the generation limits."""
        yield str(self.generation)

    def check(self, examples: ExampleSet[Seq2SeqExample]) -> None:
        """Every target is valid."""

    def encode(
        self,
        examples: ExampleSet[Seq2SeqExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens per source; for a prefix LM followed by its target."""
        after_source = self.generation.decoder is DecoderKind.PREFIX_LM
        return encode_seq2seq(
            examples.examples, tokenizer, limits, self.generation.beam_search.max_new_tokens, after_source, tick
        )

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[Seq2SeqExample], dataset: EncodedDataset
    ) -> Sequence[TextPrediction]:
        """The best text for each source, by beam search."""
        from unmask.core.records import InputsAndTargets
        from unmask.inference.generate import decode, generate
        from unmask.nets.batch.batch import collate

        texts, device = dataset.targets, next(model.parameters()).device
        assert isinstance(texts, TargetTexts), "the dataset was encoded by this task"
        found = [TextPrediction("", 0.0)] * len(examples)
        for some in EncodedDataset(texts.sources).batches_by_length(_BATCH_SIZE):
            tokens = collate(InputsAndTargets(texts.sources.take(some), ()), device).tokens
            generated = generate(model, self.name, tokens, texts.tokenizer.vocab, self.generation.beam_search)
            for number, one in zip(some.tolist(), generated, strict=True):
                found[number] = TextPrediction(decode(texts.tokenizer, one.ids), one.score)
        return found

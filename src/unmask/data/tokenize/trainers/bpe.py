"""Byte-level BPE: the vocabulary of GPT-2 and RoBERTa (Radford et al., 2019; Liu et al., 2019).

The 256 bytes are entries, so that no text is unknown, and there is no normalization.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer as Pipeline
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from unmask.data.tokenize.special_tokens import ROBERTA, SpecialTokens
from unmask.data.tokenize.trainers.train import check_vocab_size


@dataclass(frozen=True, slots=True)
class ByteBPE:
    """Bytes and merges of at least `min_pair` occurrences, up to `size` entries."""

    size: int = 50265
    min_pair: int = 2
    num_sentinels: int = 0

    def __post_init__(self) -> None:
        check_vocab_size(self, len(self.ordered_specials) + 256)

    @property
    def special_tokens(self) -> SpecialTokens:
        """RoBERTa's special tokens."""
        return ROBERTA

    @property
    def ordered_specials(self) -> tuple[str, ...]:
        """RoBERTa's order, except that the mask follows the others instead of being last."""
        return (ROBERTA.cls, ROBERTA.pad, ROBERTA.sep, ROBERTA.unk, ROBERTA.mask)

    def untrained_pipeline(self) -> Pipeline:
        """GPT-2's pre-tokenization and byte alphabet, with the template `<s> A </s></s> B </s>`."""
        pipeline = Pipeline(models.BPE())
        pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        sep, cls = ((name, self.ordered_specials.index(name)) for name in (ROBERTA.sep, ROBERTA.cls))
        pipeline.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=False)
        pipeline.decoder = decoders.ByteLevel()
        return pipeline

    def train(self, texts: Iterable[str], progress: bool) -> dict[str, Any]:
        """Train with the library: without a prefix for inner pieces its result is deterministic."""
        pipeline = self.untrained_pipeline()
        trainer = trainers.BpeTrainer(
            vocab_size=self.size - self.num_sentinels,
            min_frequency=self.min_pair,
            special_tokens=list(self.ordered_specials),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=progress,
        )
        pipeline.train_from_iterator(texts, trainer)
        model: dict[str, Any] = json.loads(pipeline.to_str())["model"]
        return model

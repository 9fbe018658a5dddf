"""A character vocabulary: one token per visible character."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Pipeline

from unmask.data.tokenize.special_tokens import BERT, BERT_SPECIALS, SpecialTokens
from unmask.data.tokenize.trainers.train import by_frequency, check_vocab_size, count_words, pair_template


@dataclass(frozen=True, slots=True)
class Characters:
    """Characters with at least `min_count` occurrences, the `size` most frequent ones."""

    size: int = 21128
    min_count: int = 2
    lowercase: bool = False
    strip_accents: bool = False
    num_sentinels: int = 0
    special_tokens: ClassVar[SpecialTokens] = BERT
    ordered_specials: ClassVar[tuple[str, ...]] = BERT_SPECIALS

    def __post_init__(self) -> None:
        check_vocab_size(self, len(self.ordered_specials))

    def untrained_pipeline(self) -> Pipeline:
        """Clean the text, drop whitespace, and split it into characters."""
        pipeline = Pipeline(models.WordLevel({BERT.unk: 0}, unk_token=BERT.unk))
        pipeline.normalizer = normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=False, strip_accents=self.strip_accents, lowercase=self.lowercase
        )
        alone = pre_tokenizers.Split(Regex("."), "isolated")
        pipeline.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), alone])
        pipeline.post_processor = pair_template(BERT, self.ordered_specials)
        pipeline.decoder = decoders.Fuse()
        return pipeline

    def train(self, texts: Iterable[str], progress: bool) -> dict[str, Any]:
        """Count characters and keep the frequent ones."""
        pipeline = self.untrained_pipeline()
        counts = count_words(texts, pipeline.normalizer.normalize_str)
        frequent = Counter({c: n for c, n in counts.items() if n >= self.min_count and not c.isspace()})
        entries = [*self.ordered_specials, *by_frequency(frequent)][: self.size - self.num_sentinels]
        vocab = {entry: number for number, entry in enumerate(entries)}
        return {"type": "WordLevel", "vocab": vocab, "unk_token": BERT.unk}

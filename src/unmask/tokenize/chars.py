"""Characters: a vocabulary of single characters and nothing else.

What arrives: texts. What leaves: the characters seen often enough, most frequent first.
What never happens here: merging. The number of tokens is the number of visible characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Pipeline

from unmask.tokenize.count import count_words, ranked
from unmask.tokenize.roles import BERT, BERT_SPECIALS, Roles
from unmask.tokenize.spec import check_size, pair_template


@dataclass(frozen=True, slots=True)
class Characters:
    """Every character seen at least `min_count` times, the `size` most frequent where there are more."""

    size: int = 21128
    min_count: int = 2
    lowercase: bool = False
    strip_accents: bool = False
    sentinels: int = 0
    roles: ClassVar[Roles] = BERT
    specials: ClassVar[tuple[str, ...]] = BERT_SPECIALS

    def __post_init__(self) -> None:
        check_size(self, len(self.specials))

    def untrained(self) -> Pipeline:
        """Clean, drop whitespace, and let every character stand alone."""
        pipeline = Pipeline(models.WordLevel({BERT.unk: 0}, unk_token=BERT.unk))
        pipeline.normalizer = normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=False, strip_accents=self.strip_accents, lowercase=self.lowercase
        )
        alone = pre_tokenizers.Split(Regex("."), "isolated")
        pipeline.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), alone])
        pipeline.post_processor = pair_template(BERT, self.specials)
        pipeline.decoder = decoders.Fuse()
        return pipeline

    def learn(self, texts: Iterable[str], progress: bool) -> dict[str, Any]:
        """Count and keep."""
        pipeline = self.untrained()
        counts = count_words(texts, pipeline.normalizer.normalize_str)
        frequent = Counter({c: n for c, n in counts.items() if n >= self.min_count and not c.isspace()})
        entries = [*self.specials, *ranked(frequent)][: self.size - self.sentinels]
        vocab = {entry: number for number, entry in enumerate(entries)}
        return {"type": "WordLevel", "vocab": vocab, "unk_token": BERT.unk}

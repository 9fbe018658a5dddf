"""WordPiece: BERT's vocabulary (Devlin et al., 2019), for Chinese and English.

As in BERT-base-Chinese, every CJK character is a word of its own before the model, so that it has no `##` form and is
never merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tokenizers import Tokenizer as Pipeline
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from unmask.data.tokenize.special_tokens import BERT, BERT_SPECIALS, SpecialTokens
from unmask.data.tokenize.trainers.train import (
    as_trainer_text,
    by_frequency,
    check_vocab_size,
    count_words,
    pair_template,
)

_INNER = "##"


@dataclass(frozen=True, slots=True)
class WordPiece:
    """Characters with at least `min_count` occurrences, then merges of at least `min_pair`, up to `size` entries.

    For English cased text: `WordPiece(28996, lowercase=False, strip_accents=False)`.
    """

    size: int = 21128
    lowercase: bool = True
    strip_accents: bool = True
    min_count: int = 2
    min_pair: int = 2
    num_sentinels: int = 0
    special_tokens: ClassVar[SpecialTokens] = BERT
    ordered_specials: ClassVar[tuple[str, ...]] = BERT_SPECIALS

    def __post_init__(self) -> None:
        check_vocab_size(self, len(self.ordered_specials))

    def untrained_pipeline(self) -> Pipeline:
        """BERT's pipeline: clean, put spaces around CJK characters, normalize, split at spaces and punctuation."""
        pipeline = Pipeline(models.WordPiece({BERT.unk: 0}, unk_token=BERT.unk))
        pipeline.normalizer = normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=self.strip_accents, lowercase=self.lowercase
        )
        pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        pipeline.post_processor = pair_template(BERT, self.ordered_specials)
        pipeline.decoder = decoders.WordPiece(prefix=_INNER)
        return pipeline

    def train(self, texts: Iterable[str], progress: bool) -> dict[str, Any]:
        """Count words, keep the frequent characters, merge the rest.

        The library numbers `##` characters in hash order and breaks ties between merges by these numbers, so that its
        result differs from run to run. Here all characters are numbered in advance.
        """
        words = self._words(texts)
        entries = self._entries(words)
        known = {entry for entry in entries if not entry.startswith(_INNER)}
        inner = {entry[len(_INNER) :] for entry in entries if entry.startswith(_INNER)} & known
        usable = {w: n for w, n in words.items() if len(w) > 1 and w[0] in known and inner.issuperset(w[1:])}
        trainer = trainers.WordPieceTrainer(
            vocab_size=self.size - self.num_sentinels,
            min_frequency=self.min_pair,
            special_tokens=[*self.ordered_specials, *entries],
            continuing_subword_prefix=_INNER,
            show_progress=progress,
        )
        pipeline = Pipeline(models.WordPiece(unk_token=BERT.unk))
        pipeline.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        pipeline.train_from_iterator(as_trainer_text(Counter(usable)), trainer)
        vocab = pipeline.get_vocab(with_added_tokens=True)
        ordered = {word: vocab[word] for word in sorted(vocab, key=vocab.__getitem__)}
        kind = {"type": "WordPiece", "unk_token": BERT.unk, "continuing_subword_prefix": _INNER}
        return {**kind, "max_input_chars_per_word": 100, "vocab": ordered}

    def _words(self, texts: Iterable[str]) -> Counter[str]:
        pipeline = self.untrained_pipeline()
        # After cleaning, every whitespace is a plain space, so Python's fast split applies.
        stretches = count_words(texts, lambda text: pipeline.normalizer.normalize_str(text).split(" "))
        words: Counter[str] = Counter()
        for stretch, count in stretches.items():
            for word, _ in pipeline.pre_tokenizer.pre_tokenize_str(stretch):
                words[word] += count
        return words

    def _entries(self, words: Counter[str]) -> list[str]:
        """Single characters and their `##` forms where they occur inside words, as many as fit."""
        counts: Counter[str] = Counter()
        for form, count in _characters(words):
            counts[form] += count
        frequent = Counter({form: count for form, count in counts.items() if count >= self.min_count})
        return by_frequency(frequent)[: self.size - self.num_sentinels - len(self.ordered_specials)]


def _characters(words: Counter[str]) -> Iterator[tuple[str, int]]:
    for word, count in words.items():
        for character in word:
            yield character, count
        for character in word[1:]:
            yield _INNER + character, count

"""The vocabulary after tokenization: special ids by role, ordinary ids, and similar words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from unmask.core.records import Ids
from unmask.core.rng import UInts, randint
from unmask.data.tokenize.similar_word_table import NO_SIMILAR_WORDS, SimilarWords


@dataclass(frozen=True, slots=True)
class Vocab:
    """The ids of a tokenizer by role. `draw` returns ordinary ids only, never special ones."""

    size: int
    cls: int
    """The first token of a row: [CLS] or <s>."""
    sep: int
    """The end of a segment: [SEP] or </s>."""
    mask: int
    pad: int
    unk: int
    ordinary: Ids
    """All ordinary ids, in increasing order."""
    sentinels: Ids
    """Sentinels of removed spans (T5) in order of use; may be empty."""

    similar_words: SimilarWords = NO_SIMILAR_WORDS
    """Similar words; empty unless a table was prepared."""
    own_bos: int | None = None
    """The id of a beginning-of-sequence token, where the vocabulary has one."""
    own_eos: int | None = None
    """The id of an end-of-sequence token, where the vocabulary has one."""

    @property
    def bos(self) -> int:
        """The BOS id; [CLS] where the vocabulary has no BOS token."""
        return self.cls if self.own_bos is None else self.own_bos

    @property
    def eos(self) -> int:
        """The EOS id; [SEP] where the vocabulary has no EOS token."""
        return self.sep if self.own_eos is None else self.own_eos

    def random_ordinary(self, bits: UInts) -> Ids:
        """A random ordinary id for each random word."""
        return self.ordinary[randint(bits, len(self.ordinary))]


def with_similar_words(vocab: Vocab, folder: Path, tokenizer: str) -> Vocab:
    """The same vocabulary with the table of similar words in `folder`, made for the tokenizer with this digest.

    Without that folder the vocabulary is returned unchanged.
    """
    return replace(vocab, similar_words=SimilarWords.load(folder, tokenizer)) if folder.is_dir() else vocab

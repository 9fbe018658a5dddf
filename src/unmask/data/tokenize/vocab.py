"""What the stages after tokenising need to know of a vocabulary: a handful of ids.

What arrives: a tokenizer's ids. What leaves: special ids by role, and the ids that a random draw may give.
What never happens here: text. Encoding and decoding belong to `tokenizer.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from unmask.core.records import Ids
from unmask.core.rng import UInts, randint
from unmask.data.tokenize.similar_word_table import NO_SIMILAR_WORDS, SimilarWords


@dataclass(frozen=True, slots=True)
class Vocab:
    """The ids of a tokenizer by role. Only `draw` gives random ids, so a random id is never a special one."""

    size: int
    cls: int
    """First token of a row: [CLS], or <s>."""
    sep: int
    """Ends a segment: [SEP], or </s>."""
    mask: int
    pad: int
    unk: int
    ordinary: Ids
    """Every id that is plain text, in increasing order."""
    sentinels: Ids
    """Markers that stand for a removed span (T5), in the order in which they are used; may be empty."""

    similar_words: SimilarWords = NO_SIMILAR_WORDS
    """Words that may stand in for one another; empty unless a table was prepared."""
    own_bos: int | None = None
    """The id of a beginning-of-sequence token, where the vocabulary has one."""
    own_eos: int | None = None
    """The id of an end-of-sequence token, where the vocabulary has one."""

    @property
    def bos(self) -> int:
        """Begins a text (BOS); [CLS] in a vocabulary without a token of its own for this."""
        return self.cls if self.own_bos is None else self.own_bos

    @property
    def eos(self) -> int:
        """Ends a text that is generated (EOS); [SEP] in a vocabulary without a token of its own for this."""
        return self.sep if self.own_eos is None else self.own_eos

    def random_ordinary(self, bits: UInts) -> Ids:
        """A random ordinary id for each word."""
        return self.ordinary[randint(bits, len(self.ordinary))]


def with_similar_words(vocab: Vocab, folder: Path, tokenizer: str) -> Vocab:
    """The same vocabulary with the table of similar words in `folder`, made for the tokenizer of this digest.

    Where no such folder exists the vocabulary stays as it is.
    """
    return replace(vocab, similar_words=SimilarWords.load(folder, tokenizer)) if folder.is_dir() else vocab

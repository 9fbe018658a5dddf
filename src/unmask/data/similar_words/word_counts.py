"""The words of a corpus: sentences as blocks, counts, spellings and classes of words.

Memory is bounded: rare words are discarded when there are too many different ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unmask.core.errors import CorpusError
from unmask.core.ragged import offsets as offsets_of
from unmask.core.records import Bools, Ids, Ints, UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.text.units.characters import CharClass, char_classes, code_points
from unmask.data.text.units.collocations import FUNCTION_WORDS
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.word_table import WordTable, word_lengths

BLOCK_TOKENS = 1 << 18
"""Approximate tokens in a block, which ends at a sentence end."""


@dataclass(frozen=True, slots=True)
class SentenceBlock:
    """A block of whole sentences."""

    ids: Ids
    word_starts: Ints
    """The positions at which words begin in `ids`; words fill it."""
    sentence_starts: Ints
    """The number of the first word of each sentence, and the end."""


def sentence_blocks(corpus: Corpus, size: int = BLOCK_TOKENS) -> Iterator[SentenceBlock]:
    """The whole corpus in blocks."""
    if UnitKind.WORD not in corpus.layers:
        raise CorpusError(
            f"Word vectors need words, but {corpus.folder} was prepared without them. "
            "Prepare the corpus for a member that masks whole words, e.g. --for macbert."
        )
    for shard in corpus.shards:
        yield from _of_shard(shard, size)


def _of_shard(shard: Shard, size: int) -> Iterator[SentenceBlock]:
    borders = shard.sentences.astype(np.int64)
    wanted = np.arange(0, borders[-1], size)
    ends = np.unique(np.append(borders[np.searchsorted(borders, wanted)], borders[-1]))
    for start, end in pairwise(ends.tolist()):
        bits = np.asarray(shard.units[start:end])
        words = np.flatnonzero(bits & UnitFlag.WORD)
        sentences = np.searchsorted(words, np.flatnonzero(bits & UnitFlag.SENTENCE))
        yield SentenceBlock(np.asarray(shard.ids[start:end]).astype(np.int32), words, np.append(sentences, len(words)))


MAX_WORD_TOKENS = 64
"""The most tokens of a word; longer ones are addresses or rows of dashes."""
MAX_WORDS = 4_000_000
"""The most different words that are counted at the same time."""
_OPENINGS = (" ", "▁", "#")
"""The first piece of a word: after a space (BPE, Unigram), or joined to the text before (WordPiece)."""


@dataclass(frozen=True, slots=True, eq=False)
class WordVocabulary:
    """The kept words, numbered as in `words`. Several words can share a spelling: " cat", "cat"."""

    words: WordTable
    counts: Ints
    spellings: tuple[str, ...]
    kinds: Ints
    """Only words of one kind can replace each other: equal length and equal form of the first piece."""
    num_running_words: int
    """The number of running words, rare ones included."""
    num_sentences: int

    def __len__(self) -> int:
        return len(self.words)

    @property
    def is_exchangeable(self) -> Bools:
        """Whether each word has a letter: punctuation and numbers have no similar words."""
        return np.array([_has_letter(spelling) for spelling in self.spellings], dtype=np.bool_)

    @property
    def is_function_word(self) -> Bools:
        """Whether each word is a function word: their vectors do not show similarity (`not` is near `also`)."""
        return np.array([spelling.casefold() in FUNCTION_WORDS for spelling in self.spellings], dtype=np.bool_)

    @property
    def is_chinese(self) -> Bools:
        """Whether each word is written with Chinese characters."""
        return np.array([_has_han(spelling) for spelling in self.spellings], dtype=np.bool_)

    @property
    def spelling_numbers(self) -> Ints:
        """One number for each spelling, without regard to case."""
        number: dict[str, int] = {}
        return np.array([number.setdefault(text.casefold(), len(number)) for text in self.spellings], dtype=np.int64)

    def frequencies(self) -> dict[str, int]:
        """The count of each spelling, most frequent first."""
        total: Counter[str] = Counter()
        for spelling, count in zip(self.spellings, self.counts.tolist(), strict=True):
            total[spelling] += count
        return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def count_corpus_words(
    corpus: Corpus, tokenizer: Tokenizer, min_count: int, max_words: int = MAX_WORDS
) -> WordVocabulary:
    """Count the words of a block by length: words of one length are rows of a matrix."""
    counts: Counter[bytes] = Counter()
    running = sentences = 0
    rare = 1
    for stretch in sentence_blocks(corpus):
        running += len(stretch.word_starts)
        sentences += len(stretch.sentence_starts) - 1
        _add(stretch, counts)
        while len(counts) > max_words:
            counts = Counter({word: count for word, count in counts.items() if count > rare})
            rare += 1
    unknown = corpus.vocab.unk
    often = ((np.frombuffer(word, np.int32), count) for word, count in counts.items() if count >= min_count)
    kept = [(word, count) for word, count in often if unknown not in word]
    if not kept:
        raise CorpusError(
            f"No word of {corpus.folder} comes {min_count} times or more. Lower --min-count, or prepare more text."
        )
    return _vocabulary(kept, tokenizer, running, sentences)


def _add(stretch: SentenceBlock, counts: Counter[bytes]) -> None:
    """Count the words of a stretch, one length after another: words of one length are rows of a matrix."""
    lengths = word_lengths(stretch.ids, stretch.word_starts)
    for length in np.unique(lengths[lengths <= MAX_WORD_TOKENS]).tolist():
        rows = stretch.ids[stretch.word_starts[lengths == length][:, None] + np.arange(length)]
        counts.update(rows.view(f"V{rows.itemsize * length}").ravel().tolist())


def _vocabulary(kept: list[tuple[Ids, int]], tokenizer: Tokenizer, running: int, sentences: int) -> WordVocabulary:
    tokens = np.concatenate([word for word, _ in kept])
    offsets = offsets_of(np.array([len(word) for word, _ in kept]))
    words = WordTable.of(tokens, offsets)
    counts = np.zeros(len(words), dtype=np.int64)
    counts[words.find(tokens, offsets[:-1])] = [count for _, count in kept]
    every = [words.word(number) for number in range(len(words))]
    spellings = tuple(spell_word(tokenizer, word) for word in every)
    openings = np.array([_opening(tokenizer, word) for word in every])
    kinds = words.lengths * (len(_OPENINGS) + 1) + openings
    return WordVocabulary(words, counts, spellings, kinds, running, sentences)


def spell_word(tokenizer: Tokenizer, word: Ids | list[int]) -> str:
    """The spelling of a word. Decoders insert spaces between Chinese characters, which are removed."""
    return "".join(tokenizer.decode(word).split())


def _opening(tokenizer: Tokenizer, word: Ids) -> int:
    first = tokenizer.ids_to_tokens(word[:1])[0][:1]
    return _OPENINGS.index(first) + 1 if first in _OPENINGS else 0


def _has_letter(text: str) -> bool:
    """Whether a word has a letter. Chinese numerals do not count, and a word with a broken character has none."""
    return "\ufffd" not in text and any(sign.isalpha() and not sign.isnumeric() for sign in text)


def _has_han(text: str) -> bool:
    return bool((char_classes(code_points(text)) == CharClass.HAN).any())

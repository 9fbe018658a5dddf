"""Phrase learning: word sequences with high normalized pointwise mutual information (NPMI).

The score of a sequence is the NPMI (Bouma, 2009) of its weakest split into two parts: 1 if the parts never occur apart,
0 if they co-occur as often as by chance. The weakest split excludes `New York said`. Rare sequences are discarded while
counting, so that memory is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress
from math import log

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import Document
from unmask.data.text.units.phrases import Phrase, PhraseMatcher, sentence_numbers, words_of

_CHINESE = """
的 了 是 在 和 与 及 或 而 且 但 也 都 就 还 又 再 很 更 最 太 不 没 没有 无 有 被 把 将 对 向 从 由 以 于 为 因 因为
所以 如果 虽然 但是 而且 并 并且 或者 以及 即 则 若 之 其 此 该 这 那 这个 那个 这些 那些 这种 那种 这样 那样 什么 怎么
如何 哪 谁 我 你 他 她 它 我们 你们 他们 她们 它们 自己 一 一个 一种 一些 个 种 些 等 等等 着 过 得 地 吗 呢 吧 啊 呀 嘛
来 去 上 下 中 里 内 外 前 后 时 当 到 给 让 使 用 比 跟 同 只 才 却 可 可以 能 会 要 应 应该 必须 已 已经 曾 正 正在 所
者 每 各 另 某 几 多 少 们 说 年 月 日 第
"""
_ENGLISH = """
a an the and or but nor so yet if then than as at by for from in into of off on onto out over to up with without within
about after before between through during under above against among around because while when where which who whom whose
that this these those there here it its he him his she her hers they them their we us our you your i me my mine is am
are was were be been being have has had having do does did doing will would shall should can could may might must not no
all any both each either neither some such other another more most much many few own same just only very also too even
how what why said says
"""

FUNCTION_WORDS = frozenset(_CHINESE.split()) | frozenset(_ENGLISH.split())


@dataclass(frozen=True, slots=True)
class CollocationConfig:
    """The conditions of a phrase."""

    min_npmi: float = 0.5
    """The least NPMI, from 0 to 1."""
    min_count: int = 5
    """The least number of occurrences."""
    max_words: int = 4
    """The most words in a phrase."""
    max_candidates: int = 1_000_000
    """The most sequences in memory; beyond that, the rarest are discarded."""
    excluded: frozenset[str] = field(default=FUNCTION_WORDS, repr=False)
    """Words that no phrase contains. Punctuation and bare numbers are always excluded."""

    def __post_init__(self) -> None:
        if self.max_words < 2 or self.min_count < 1 or self.max_candidates < 1 or not 0 <= self.min_npmi <= 1:
            raise RecipeError(
                "Collocation: needs phrases of 2 or more words, a count and a size of at least 1 and a strength from 0 "
                f"to 1; got {self.max_words}, {self.min_count}, {self.max_candidates} and {self.min_npmi}."
            )

    def describe(self) -> str:
        """One line for the manifest."""
        return f"phrases of up to {self.max_words} words seen {self.min_count} times, strength {self.min_npmi}"


def learn_phrases(documents: Iterable[Document], config: CollocationConfig | None = None) -> PhraseMatcher:
    """Phrases of the documents, strongest first."""
    config = config or CollocationConfig()
    counts: Counter[Phrase] = Counter()
    total = floor = 0
    for document in documents:
        total += _count(document, counts, config)
        while len(counts) > config.max_candidates:
            floor += 1
            counts = Counter({phrase: seen for phrase, seen in counts.items() if seen > floor})
    return PhraseMatcher(tuple(_strongest(counts, total, config)))


def _count(document: Document, counts: Counter[Phrase], config: CollocationConfig) -> int:
    """Count the sequences of one document and return its number of content words."""
    spans, words = words_of(document)
    content = np.fromiter((_is_content(word, config.excluded) for word in words), dtype=np.bool_, count=len(words))
    sentence = sentence_numbers(document, spans)
    barred = np.cumsum(~content)
    for length in range(1, min(config.max_words, len(words)) + 1):
        last = slice(length - 1, None)
        first = slice(0, len(words) - length + 1)
        together = content[first] & (barred[first] == barred[last]) & (sentence[first] == sentence[last])
        sequences = zip(*(words[offset:] for offset in range(length)), strict=False)
        counts.update(compress(sequences, together.tolist()))
    return int(content.sum())


def _is_content(word: str, excluded: frozenset[str]) -> bool:
    return word[0].isalpha() and word not in excluded and word.lower() not in excluded


def _strongest(counts: Counter[Phrase], total: int, config: CollocationConfig) -> list[Phrase]:
    scored = (
        (_weakest_npmi(phrase, seen, counts, total), phrase)
        for phrase, seen in counts.items()
        if len(phrase) > 1 and seen >= config.min_count
    )
    strong = sorted((-strength, phrase) for strength, phrase in scored if strength >= config.min_npmi)
    return [phrase for _, phrase in strong]


def _weakest_npmi(phrase: Phrase, seen: int, counts: Counter[Phrase], total: int) -> float:
    """The NPMI of the weakest split. A part that was discarded counts as often as the whole."""
    surprise = log(total / seen)
    if not surprise:
        return 1.0
    weakest = min(
        log(seen * total / (max(counts[phrase[:joint]], seen) * max(counts[phrase[joint:]], seen)))
        for joint in range(1, len(phrase))
    )
    return weakest / surprise

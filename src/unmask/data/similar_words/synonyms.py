"""Synonym files: one group of synonyms a line, separated by spaces, tabs or commas.

A line may begin with a code of the thesaurus Cilin: `Aa01A01= 人 士 人物`. In these codes = is for synonyms; # is for
related words and @ for single words, and both are skipped. A line that begins with # alone is a comment. Only words of
the corpus vocabulary enter the table.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unmask.core.errors import InputError
from unmask.data.similar_words.nearest import NeighbourPairs
from unmask.data.similar_words.word_counts import WordVocabulary, spell_word
from unmask.data.text.files.encoding import numbered_lines
from unmask.data.tokenize.tokenizer import Tokenizer

_BETWEEN = re.compile(r"[\s,，、;；]+")
_CODE = re.compile(r"[A-Za-z]+\d\w*([=#@])")

Groups = tuple[tuple[str, ...], ...]


def read_groups(path: Path) -> Groups:
    """The groups of a synonym file, in order."""
    groups = tuple(group for _, line in numbered_lines(path, "synonym file") if len(group := _group(line)) > 1)
    if not groups:
        raise InputError(
            f"{path} holds no synonyms: no line has two words or more. "
            "Write one group of synonyms a line, separated by spaces, tabs or commas."
        )
    return groups


def _group(line: str) -> tuple[str, ...]:
    """The different words of a line; none for a comment, or a code without synonyms."""
    words = [word for word in _BETWEEN.split(line) if word]
    if not words or words[0].startswith("#"):
        return ()
    code = _CODE.fullmatch(words[0])
    if code and code[1] != "=":
        return ()
    return tuple(dict.fromkeys(words[1:] if code else words))


def synonym_pairs(groups: Groups, vocabulary: WordVocabulary, tokenizer: Tokenizer) -> NeighbourPairs:
    """Pairs of corpus words of one kind in one group, in file order."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for number in np.flatnonzero(vocabulary.is_exchangeable).tolist():
        numbers[vocabulary.spellings[number]].append(number)
    spelled = _spell_words(tokenizer, {word for group in groups for word in group})
    kinds, same = vocabulary.kinds.tolist(), vocabulary.spelling_numbers.tolist()
    pairs = [
        (word, other)
        for group in groups
        for members in [[number for word in group for number in numbers.get(spelled[word], ())]]
        for word in members
        for other in members
        if kinds[word] == kinds[other] and same[word] != same[other]
    ]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return NeighbourPairs(table[:, 0], table[:, 1])


def _spell_words(tokenizer: Tokenizer, words: set[str]) -> dict[str, str]:
    """The spelling of each word after the normalization of the tokenizer."""
    every: Sequence[str] = sorted(words)
    codes = tokenizer.pipeline.encode_batch(every, add_special_tokens=False)
    return {word: spell_word(tokenizer, code.ids) for word, code in zip(every, codes, strict=True)}

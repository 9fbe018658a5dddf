"""One answer against one truth, as SQuAD judges it.

What arrives: two texts. What leaves: a number between 0 and 1.
What never happens here: choosing between several truths, or averaging. See `spans`.

The definition is that of the official scripts (evaluate-v1.1.py, Rajpurkar et al., 2016; evaluate-v2.0.py, Rajpurkar et
al., 2018): both texts are lower-cased, lose ASCII punctuation and then the words a, an, the, and are split at white
space. The two scripts differ in F1 where nothing is left of a text: the first gives 0, the second 1 if nothing is left
of both.
"""

from __future__ import annotations

import re
import string
from collections import Counter

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalized_words(text: str) -> list[str]:
    """The words that count. Punctuation vanishes without a gap: `well-known` is one word, `wellknown`."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def exact_match(truth: str, prediction: str) -> float:
    """Whether both texts have the same words in the same order."""
    return float(normalized_words(truth) == normalized_words(prediction))


def f1_squad1(truth: str, prediction: str) -> float:
    """F1 of the two bags of words, as SQuAD 1.1 defines it."""
    ours, theirs = Counter(normalized_words(prediction)), Counter(normalized_words(truth))
    common = (ours & theirs).total()
    return 2 * common / (ours.total() + theirs.total()) if common else 0.0


def f1_squad2(truth: str, prediction: str) -> float:
    """F1 of the two bags of words, as SQuAD 2.0 defines it: nothing against nothing is 1."""
    return f1_squad1(truth, prediction) if normalized_words(truth) or normalized_words(prediction) else 1.0

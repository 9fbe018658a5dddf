"""One answer against one truth, as CMRC 2018 judges it.

What arrives: two texts. What leaves: a number between 0 and 1.
What never happens here: choosing between several truths, or averaging. See `spans`.

The definition is that of the official script (cmrc2018_evaluate.py, Cui et al., 2019):

1. Both texts are lower-cased and lose the outer white space and the punctuation of a fixed list. ASCII commas, points
   and brackets are not on it, nor is the single character … (the list names it doubled, which no character equals).
2. *Exact match* compares what is left, white space included.
3. *F1* cuts what is left into units. Each Chinese character (U+4E00 to U+9FA5) is a unit; each run of anything else is
   cut into words by the rules of the Penn Treebank as NLTK's `word_tokenize` applies them. Punctuation vanishes before
   the cutting and leaves no gap: `T-恤` is t, 恤 and `GPT-2` is gpt2.
4. What both texts share is their longest common *run* of units, side by side in both: neither the bag of words of
   SQuAD nor a subsequence. F1 is 2 x run / (units of the answer + units of the truth), and 0 where nothing is shared,
   even if both texts are empty.

One departure: the script lets NLTK's trained model look for sentence ends inside a run before its words are cut. Here a
run is one sentence, so that no model has to be fetched; it matters only for several English sentences in one answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CHINESE = re.compile(r"([\u4e00-\u9fa5])")
_CLITICS = r"(?:re|ve|ll|m|t|s|d|n)\b"
_TREEBANK = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"[«‘„]", r" \g<0> "),
        (r'^"', " `` "),  # a quotation mark that opens, at the beginning or after a space or bracket
        (r"""([ (\[{<])("|'')""", r"\1 `` "),
        (rf"(?<!\w)'(?!{_CLITICS})(?=\w)", "' "),
        (r"""([^.])(\.)([\])}>"'» ]*+)\s*$""", r"\1 \2 \3 "),  # the last point; others belong to their words
        (r",(\D)", r" , \1"),  # 3,000 stays together
        (r",$", " , "),
        (r"\.{2,}", r" \g<0> "),
        (r"[;@#$%&\u2012-\u2015?!]", r" \g<0> "),
        (r"([^'])' ", r"\1 ' "),
        (r"[\]\[(){}<>]", r" \g<0> "),
        (r"^|$", " "),
        (r"»", r" \g<0> "),
        (r"''|\"", " '' "),
        (r"\s+", " "),
        (r"([^' ])('[smd]|') ", r"\1 \2 "),
        (r"([^' ])('ll|'re|'ve|n't) ", r"\1 \2 "),
    )
)
"""Where words are parted, in this order, on lower-cased text without the punctuation above."""
_CONTRACTIONS = (
    re.compile(
        r"\b(can)(not)\b|\b(d)('ye)\b|\b(gim|lem)(me)\b|\b(gon)(na)\b|\b(got)(ta)\b|\b(more)('n)\b|\b(wan)(na)(?=\s)"
    ),
    re.compile(r" ('t)(is|was)\b"),
)


def normalize(text: str) -> str:
    """What exact match compares: the text in lower case, without outer white space and the listed punctuation."""
    return text.lower().strip().translate(_PUNCTUATION)


def f1_units(text: str) -> list[str]:
    """What F1 compares: Chinese characters one by one, and the words of the runs between them."""
    parts = filter(None, _CHINESE.split(normalize(text)))  # between two Chinese characters stands an empty run
    return [unit for part in parts for unit in ((part,) if _CHINESE.match(part) else _words(part))]


def exact_match(truth: str, prediction: str) -> float:
    """Whether nothing but case and listed punctuation differs."""
    return float(normalize(truth) == normalize(prediction))


def f1(truth: str, prediction: str) -> float:
    """F1 of the longest common run of units."""
    theirs, ours = f1_units(truth), f1_units(prediction)
    run = _longest_common_run(theirs, ours)
    return 2 * run / (len(theirs) + len(ours)) if run else 0.0


def _words(run: str) -> list[str]:
    """The words of a run, by the rules of the Penn Treebank."""
    for pattern, to in _TREEBANK:
        run = pattern.sub(to, run)
    for pattern in _CONTRACTIONS:
        run = pattern.sub(_split_contraction, run)
    return run.split()


def _split_contraction(contraction: re.Match[str]) -> str:
    return f" {' '.join(filter(None, contraction.groups()))} "


def _longest_common_run(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the longest stretch that stands in both, by the lengths of the stretches that end at each pair."""
    longest, before = 0, [0] * (len(right) + 1)
    for unit in left:
        here = [0, *(length + 1 if unit == other else 0 for length, other in zip(before, right, strict=False))]
        longest, before = max(longest, *here), here
    return longest

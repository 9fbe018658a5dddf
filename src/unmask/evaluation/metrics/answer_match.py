"""Answer matching as the official scripts of SQuAD and CMRC 2018 define it, and the language of a text.

SQuAD (evaluate-v1.1.py, Rajpurkar et al., 2016; evaluate-v2.0.py, 2018): both texts are lower-cased, lose ASCII
punctuation and the words a, an, the, and are split at white space. The two versions differ in F1 of empty texts: 0 in
the first, 1 in the second if both are empty.

CMRC (cmrc2018_evaluate.py, Cui et al., 2019):

1. Both texts are lower-cased and lose outer white space and the punctuation of a fixed list. ASCII commas, points and
   brackets are not on it, nor is the single character … (the list has it doubled, which no character equals).
2. *Exact match* compares the rest, with its white space.
3. *F1* splits the rest into units: each Chinese character (U+4E00 to U+9FA5), and the words of other runs by the rules
   of the Penn Treebank as in NLTK's `word_tokenize`. Punctuation leaves no gap: `T-恤` is t, 恤 and `GPT-2` is gpt2.
4. The overlap of two texts is their longest common *run* of units: neither SQuAD's bag of words nor a subsequence. F1
   is 2 x run / (units of the answer + units of the reference), and 0 without overlap, even if both texts are empty.

One departure: the script first splits a run into sentences with NLTK's trained model. Here a run is one sentence, so
that no model has to be downloaded; it matters only for answers with several English sentences.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Chinese characters, for use in a character class of a pattern."""
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_OTHER_WORD = re.compile(rf"[^\W\d_{HAN}]+")


class Language(Enum):
    """The language of a text, as far as metrics split it differently."""

    CHINESE = "Chinese"
    OTHER = "other"


def language_of(texts: Iterable[str]) -> Language:
    """Chinese if there are more Chinese characters than words of other letters in all texts together."""
    balance = sum(len(_HAN_CHARACTER.findall(text)) - len(_OTHER_WORD.findall(text)) for text in texts)
    return Language.CHINESE if balance > 0 else Language.OTHER


_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def squad_words(text: str) -> list[str]:
    """The words that SQuAD compares. Punctuation leaves no gap: `well-known` is `wellknown`."""
    return _ARTICLE.sub(" ", text.lower().translate(_ASCII_PUNCTUATION)).split()


def squad_exact_match(truth: str, prediction: str) -> float:
    """Whether both texts have the same words in the same order."""
    return float(squad_words(truth) == squad_words(prediction))


def squad1_f1(truth: str, prediction: str) -> float:
    """F1 of the two bags of words, as SQuAD 1.1 defines it."""
    ours, theirs = Counter(squad_words(prediction)), Counter(squad_words(truth))
    common = (ours & theirs).total()
    return 2 * common / (ours.total() + theirs.total()) if common else 0.0


def squad2_f1(truth: str, prediction: str) -> float:
    """F1 of the two bags of words, as SQuAD 2.0 defines it: nothing against nothing is 1."""
    return squad1_f1(truth, prediction) if squad_words(truth) or squad_words(prediction) else 1.0


_CMRC_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
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
"""Where words are split, in this order, in lower-cased text without the punctuation above."""
_CONTRACTIONS = (
    re.compile(
        r"\b(can)(not)\b|\b(d)('ye)\b|\b(gim|lem)(me)\b|\b(gon)(na)\b|\b(got)(ta)\b|\b(more)('n)\b|\b(wan)(na)(?=\s)"
    ),
    re.compile(r" ('t)(is|was)\b"),
)


def _normalize(text: str) -> str:
    """The text that exact match compares: lower case, without outer white space and the listed punctuation."""
    return text.lower().strip().translate(_CMRC_PUNCTUATION)


def cmrc_units(text: str) -> list[str]:
    """The units that F1 compares: Chinese characters, and the words of the runs between them."""
    parts = filter(None, _CHINESE.split(_normalize(text)))  # adjacent Chinese characters have an empty run between them
    return [unit for part in parts for unit in ((part,) if _CHINESE.match(part) else _words(part))]


def cmrc_exact_match(truth: str, prediction: str) -> float:
    """Whether nothing but case and listed punctuation differs."""
    return float(_normalize(truth) == _normalize(prediction))


def cmrc_f1(truth: str, prediction: str) -> float:
    """F1 of the longest common run of units."""
    theirs, ours = cmrc_units(truth), cmrc_units(prediction)
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
    """The length of the longest common run, by dynamic programming over the runs that end at each pair."""
    longest, before = 0, [0] * (len(right) + 1)
    for unit in left:
        here = [0, *(length + 1 if unit == other else 0 for length, other in zip(before, right, strict=False))]
        longest, before = max(longest, *here), here
    return longest

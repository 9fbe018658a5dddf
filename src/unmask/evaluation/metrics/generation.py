"""BLEU, chrF and ROUGE of generated text.

BLEU (Papineni et al., 2002) and chrF (Popović, 2015) are those of sacrebleu (Post, 2018) with its defaults: `zh`
tokenization for Chinese references, `13a` otherwise. ROUGE (Lin, 2004) is the F1 of shared units: runs of the letters a
to z and digits as in Google's rouge-score, and single Chinese or Japanese characters, which rouge-score drops. Scores
are between 0 and 1; papers and sacrebleu print 100 times that.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from unmask.evaluation.metrics.answer_match import HAN, Language, language_of
from unmask.evaluation.metrics.classification import Scores

References: TypeAlias = Sequence[Sequence[str]]
"""The references of each row, at least one."""

_UNIT = re.compile(rf"[a-z0-9]+|[{HAN}\u3041-\u3096\u30a1-\u30fa]")
_FULL_WIDTH = {0xFF01 + place: 0x21 + place for place in range(94)}


def generation_metrics(references: References, predictions: Sequence[str]) -> Scores:
    """BLEU and chrF of all rows together; ROUGE-1, ROUGE-2 and ROUGE-L as means over rows.

    BLEU and chrF use all references; ROUGE uses the best one, for each variant.
    """
    _check_texts(references, predictions)
    rouge = np.mean([_best_rouge(each, text) for each, text in zip(references, predictions, strict=True)], axis=0)
    scores = zip(("rouge_1", "rouge_2", "rouge_l"), map(float, rouge), strict=True)
    return MappingProxyType(
        {"bleu": bleu(references, predictions), "chrf": chrf(references, predictions), **dict(scores)}
    )


def generation_baseline(references: References, sources: Sequence[str]) -> Scores:
    """The baseline that copies the source."""
    return generation_metrics(references, sources)


def bleu(references: References, predictions: Sequence[str]) -> float:
    """BLEU of all rows together, up to four units, with sacrebleu's exponential smoothing."""
    from sacrebleu.metrics.bleu import BLEU  # imported here: only generation needs it

    language = language_of(text for each in references for text in each)
    metric = BLEU(tokenize="zh" if language is Language.CHINESE else "13a", force=True)
    return float(metric.corpus_score(list(predictions), _transpose_references(references)).score) / 100


def chrf(references: References, predictions: Sequence[str]) -> float:
    """The F2 of runs of one to six characters, white space left out."""
    from sacrebleu.metrics.chrf import CHRF

    return float(CHRF().corpus_score(list(predictions), _transpose_references(references)).score) / 100


def rouge_units(text: str) -> list[str]:
    """The units of ROUGE; full-width letters count as plain ones."""
    return _UNIT.findall(text.translate(_FULL_WIDTH).lower())


def rouge_n(truth: Sequence[str], predicted: Sequence[str], size: int) -> float:
    """The F1 of the runs of `size` units that two texts share; a run that both hold twice counts twice."""
    theirs, ours = (Counter(tuple(row[i : i + size]) for i in range(len(row) - size + 1)) for row in (truth, predicted))
    return _f1((theirs & ours).total(), theirs.total(), ours.total())


def rouge_l(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """The F1 of the longest common subsequence of units: the same order, gaps allowed."""
    return _f1(_common_subsequence(truth, predicted), len(truth), len(predicted))


def _best_rouge(references: Sequence[str], prediction: str) -> tuple[float, ...]:
    """ROUGE-1, ROUGE-2 and ROUGE-L of one row, each against the reference that fits it best."""
    ours, truths = rouge_units(prediction), [rouge_units(reference) for reference in references]
    each = [(rouge_n(truth, ours, 1), rouge_n(truth, ours, 2), rouge_l(truth, ours)) for truth in truths]
    return tuple(map(max, zip(*each, strict=True)))


def _common_subsequence(left: Sequence[str], right: Sequence[str]) -> int:
    """Its length by a bit-parallel algorithm: a row of the usual table is one integer (Hyyrö, 2004).

    A bit of `row` is 0 where the length grows by one at a position of `left`.
    """
    places: defaultdict[str, int] = defaultdict(int)
    for place, unit in enumerate(left):
        places[unit] |= 1 << place
    full = (1 << len(left)) - 1
    row = full
    for unit in right:
        here = row & places[unit]
        row = ((row + here) | (row - here)) & full
    return len(left) - row.bit_count()


def _f1(shared: int, theirs: int, ours: int) -> float:
    return 2 * shared / (theirs + ours) if shared else 0.0


def _transpose_references(references: References) -> list[list[str]]:
    """References in the layout of sacrebleu: all first ones, all second ones, ...

    A row with fewer references repeats its first one, which changes neither score.
    """
    most = max(map(len, references))
    return [[each[which if which < len(each) else 0] for each in references] for which in range(most)]


def _check_texts(references: References, predictions: Sequence[str]) -> None:
    assert len(references) == len(predictions) > 0, f"{len(predictions)} texts for {len(references)} rows"
    assert all(references), "a row has no reference"

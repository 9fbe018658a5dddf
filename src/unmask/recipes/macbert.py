"""MacBERT: MLM as correction of similar words (Cui et al., 2020).

Changes from BERT-wwm: n-grams of 1 to 4 words are selected (40 / 30 / 20 / 10 %); 80 % of the selected words are
replaced by a similar word, 10 % by a random one, 10 % stay, and [MASK] never occurs; sentence order replaces
next-sentence prediction; rows of 512 tokens throughout.
Each word of an n-gram draws on its own, and its replacement has as many tokens (the paper leaves lengths open). A word
without a similar one is replaced by a random word of the same length. The paper caps that at 10 % of the masked tokens;
here nothing is capped, because a cap would change which words are predicted (docs/decisions/0007). `unmask audit
macbert` counts how often it happens on a corpus.
"""

from __future__ import annotations

from dataclasses import replace

from unmask.config.sizes import BASE, Size
from unmask.core.records import UnitKind
from unmask.data.corrupt.masking import MaskTokens, Replace, ReplaceBy, WholeUnits
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import SOP
from unmask.recipes.wwm import wwm
from unmask.tasks.recipe import Recipe, Stage, Task


def macbert(size: Size = BASE) -> Recipe:
    """MacBERT as published."""
    correct = Task(
        name="correct",
        examples=SegmentPairs(Negative.SWAPPED, short_fraction=0.1),
        corruption=MaskTokens(
            WholeUnits(UnitKind.WORD, run_lengths=(0.4, 0.3, 0.2, 0.1), rate=0.15, inside=UnitKind.SENTENCE),
            Replace(similar=0.8, random=0.1, keep=0.1, per=ReplaceBy.WORD),
        ),
        objectives=(MLM(), SOP),
    )
    return replace(
        wwm(size),
        name="macbert",
        year=2020,
        paper="arXiv:2004.13922",
        title="Revisiting Pre-Trained Models for Chinese Natural Language Processing",
        summary="similar words instead of masks, runs of words, sentence order",
        parent="wwm",
        stages=(Stage(tasks=(correct,), max_length=512, batch_size=512),),
    )

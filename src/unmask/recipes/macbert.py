"""MacBERT: correct similar words instead of filling holes (Cui et al., 2020).

Changes from BERT-wwm: runs of 1 to 4 words are chosen (40 / 30 / 20 / 10 %); 80 % of the chosen words are replaced by a
similar word, 10 % by a random one, 10 % stay, and [MASK] is never shown; sentence order replaces next-sentence
prediction; rows of 512 tokens throughout.
Each word of a run draws on its own, and its stand-in has as many tokens (the paper does not say how lengths are kept).
The notes say nothing about a word without a similar one; the paper replaces it by a random word, and caps that at 10 %
of the masked tokens. Here it is a random word of the same length, and nothing is capped: a cap would change which words
are asked for (docs/decisions/0007). `unmask audit macbert` counts how often it happens on your text.
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

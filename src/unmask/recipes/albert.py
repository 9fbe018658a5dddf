"""ALBERT: a lite BERT (Lan et al., 2019), its data half.

Changes from BERT: the second segment follows the first or the two are swapped, and the order must be told (SOP); runs
of 1 to 3 words are masked, with probabilities in proportion to 1/n; a Unigram vocabulary; rows of 512 tokens in batches
of 4 096. A chunk of a single sentence is cut in two; the released code gives it a random partner, which would let
next-sentence prediction in by the back door.
"""

from __future__ import annotations

from dataclasses import replace

from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.select import Units, inverse
from unmask.examples.pairs import Negative, Pairs
from unmask.objectives.mlm import MLM
from unmask.objectives.pair import SOP
from unmask.recipes.bert import SHOW, bert
from unmask.records import Layer
from unmask.tasks import Recipe, Stage, Task
from unmask.tokenize.unigram import Unigram


def albert() -> Recipe:
    """ALBERT as published."""
    runs = Task(
        name="cloze",
        examples=Pairs(Negative.SWAPPED, short=0.1),
        corrupt=MaskOut(Units(Layer.WORD, run=inverse(3), rate=0.15, inside=Layer.SENTENCE), SHOW),
        learns=(MLM(), SOP),
    )
    return replace(
        bert(),
        name="albert",
        year=2019,
        paper="arXiv:1909.11942",
        title="ALBERT: A Lite BERT for Self-supervised Learning of Language Representations",
        changed="sentence order instead of next sentence, runs of words",
        parent="bert",
        tokenizer=Unigram(size=30_000),
        stages=(Stage(tasks=(runs,), length=512, batch=4096),),
    )

"""ALBERT: a lite BERT (Lan et al., 2019).

Changes from BERT: all layers share one set of parameters, and token embeddings are 128 wide and projected up; the
second segment follows the first or the two are swapped, and the order must be told (SOP); runs of 1 to 3 words are
masked, with probabilities in proportion to 1/n; a Unigram vocabulary; LAMB; rows of 512 tokens in batches of 4,096. A
chunk of a single sentence is cut in two; the released code gives it a random partner, which would let next-sentence
prediction in by the back door.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.select import Units, inverse
from unmask.examples.pairs import Negative, Pairs
from unmask.nets.sizes import BASE, LARGE, Size
from unmask.nets.trunk import Activation, Sharing
from unmask.objectives.mlm import MLM
from unmask.objectives.pair import SOP
from unmask.optimising import LAMB, Descent, Linear, Origin, WarmupShare
from unmask.recipes.bert import SHOW, bert
from unmask.records import Layer
from unmask.tasks import Recipe, Stage, Task
from unmask.tokenize.unigram import Unigram

SIZES: Mapping[str, Size] = MappingProxyType(
    {
        "base": BASE,
        "large": LARGE,
        "xlarge": Size(depth=24, width=2048, heads=16, inner=8192),
        "xxlarge": Size(depth=12, width=4096, heads=64, inner=16_384),
    }
)


def albert(size: Size = BASE) -> Recipe:
    """ALBERT as published."""
    runs = Task(
        name="cloze",
        examples=Pairs(Negative.SWAPPED, short=0.1),
        corrupt=MaskOut(Units(Layer.WORD, run=inverse(3), rate=0.15, inside=Layer.SENTENCE), SHOW),
        learns=(MLM(), SOP),
    )
    published = bert(size)
    return replace(
        published,
        name="albert",
        year=2019,
        paper="arXiv:1909.11942",
        title="ALBERT: A Lite BERT for Self-supervised Learning of Language Representations",
        changed="layers share their parameters, sentence order is told, runs of words",
        parent="bert",
        tokenizer=Unigram(size=30_000),
        stages=(Stage(tasks=(runs,), length=512, batch=4096),),
        trunk=replace(published.trunk, embedding=128, sharing=Sharing.ALL, activation=Activation.GELU_TANH),
        # 3,125 of 125,000 steps.
        descent=Descent(LAMB(rate=0.00176), Linear(WarmupShare(0.025), origin=Origin.START), clip=1.0),
    )

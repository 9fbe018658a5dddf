"""BERT-wwm: whole words are masked, not single characters (Cui et al., 2019).

Changes from BERT: words are chosen instead of tokens, so that no word is half hidden. The notes' picture shows [MASK]
on every character of a word; in Google's released code each still draws its own 80 / 10 / 10, and so it is here. Half
of the steps on rows of 128, half on rows of 512, with larger batches; LAMB.
Words are those of the stored units, so Chinese words of a segmenter and English words of several pieces are chosen by
the same rule. The authors went on from Google's Chinese BERT: `unmask pretrain wwm --from FOLDER`.
"""

from __future__ import annotations

from dataclasses import replace

from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.select import Units
from unmask.examples.pairs import Negative, Pairs
from unmask.nets.sizes import BASE, Size
from unmask.objectives.mlm import MLM
from unmask.objectives.pair import NSP
from unmask.optimising import LAMB, Descent, Linear, Origin, WarmupShare
from unmask.recipes.bert import SHOW, bert
from unmask.records import Layer
from unmask.tasks import Recipe, Stage, Task


def wwm(size: Size = BASE) -> Recipe:
    """BERT-wwm as published for Chinese."""
    words = Task(
        name="cloze",
        examples=Pairs(Negative.RANDOM, short=0.1),
        corrupt=MaskOut(Units(Layer.WORD, rate=0.15), SHOW),
        learns=(MLM(), NSP),
    )
    return replace(
        bert(size),
        name="wwm",
        year=2019,
        paper="arXiv:1906.08101",
        title="Pre-Training with Whole Word Masking for Chinese BERT",
        changed="whole words are masked",
        parent="bert",
        stages=(
            Stage(tasks=(words,), length=128, batch=2560, share=0.5),
            Stage(tasks=(words,), length=512, batch=384, share=0.5),
        ),
        descent=Descent(LAMB(rate=1e-4), Linear(WarmupShare(0.1), origin=Origin.START), clip=1.0),
    )

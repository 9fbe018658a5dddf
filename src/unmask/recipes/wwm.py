"""BERT-wwm: whole-word masking (Cui et al., 2019).

Changes from BERT: words are selected instead of tokens, so that no word is half masked. Each token of a word draws its
own 80 / 10 / 10, as in Google's released code. Half of the steps on rows of 128, half on rows of 512, with larger
batches; LAMB.
Words are those of the stored units, so Chinese words of a segmenter and English words of several pieces are selected by
the same rule. The authors started from Google's Chinese BERT: `unmask pretrain wwm --init-from FOLDER`.
"""

from __future__ import annotations

from dataclasses import replace

from unmask.config.optim import LAMB, DecayFrom, Linear, OptimConfig, WarmupFraction
from unmask.config.sizes import BASE, Size
from unmask.core.records import UnitKind
from unmask.data.corrupt.masking import MaskTokens, WholeUnits
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import NSP
from unmask.recipes.bert import REPLACEMENT, bert
from unmask.tasks.recipe import Recipe, Stage, Task


def wwm(size: Size = BASE) -> Recipe:
    """BERT-wwm as published for Chinese."""
    words = Task(
        name="cloze",
        examples=SegmentPairs(Negative.RANDOM, short_fraction=0.1),
        corruption=MaskTokens(WholeUnits(UnitKind.WORD, rate=0.15), REPLACEMENT),
        objectives=(MLM(), NSP),
    )
    return replace(
        bert(size),
        name="wwm",
        year=2019,
        paper="arXiv:1906.08101",
        title="Pre-Training with Whole Word Masking for Chinese BERT",
        summary="whole words are masked",
        parent="bert",
        stages=(
            Stage(tasks=(words,), max_length=128, batch_size=2560, fraction=0.5),
            Stage(tasks=(words,), max_length=512, batch_size=384, fraction=0.5),
        ),
        optim=OptimConfig(LAMB(lr=1e-4), Linear(WarmupFraction(0.1), decay_from=DecayFrom.START), max_grad_norm=1.0),
    )

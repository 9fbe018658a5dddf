"""RoBERTa: BERT trained with care (Liu et al., 2019).

Changes from BERT: no next-sentence prediction, and rows of consecutive sentences that may run on into the next document
after a separator (FULL-SENTENCES); masks are drawn anew at every visit; byte-level BPE; rows of 512 tokens throughout,
in batches of 8 192. (DOC-SENTENCES scored slightly better, but the final recipe uses FULL-SENTENCES.)
"""

from __future__ import annotations

from dataclasses import replace

from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.select import Tokens
from unmask.examples.packed import Join, Packed
from unmask.examples.visits import EveryVisit
from unmask.objectives.mlm import MLM
from unmask.recipes.bert import SHOW, bert
from unmask.tasks import Recipe, Stage, Task
from unmask.tokenize.bpe import ByteBPE


def roberta() -> Recipe:
    """RoBERTa as published."""
    cloze = Task(
        name="cloze",
        examples=Packed(Join.ACROSS),
        corrupt=MaskOut(Tokens(rate=0.15), SHOW),
        learns=(MLM(),),
    )
    return replace(
        bert(),
        name="roberta",
        year=2019,
        paper="arXiv:1907.11692",
        title="RoBERTa: A Robustly Optimized BERT Pretraining Approach",
        changed="no next sentence, full rows, masks drawn at every visit",
        parent="bert",
        tokenizer=ByteBPE(),
        stages=(Stage(tasks=(cloze,), length=512, batch=8192),),
        renew=EveryVisit(),
    )

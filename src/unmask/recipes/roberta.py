"""RoBERTa: a robustly optimized BERT (Liu et al., 2019).

Changes from BERT: no next-sentence prediction, and rows of consecutive sentences that may continue into the next
document after a separator (FULL-SENTENCES); dynamic masks; byte-level BPE; rows of 512 tokens throughout, in batches of
8,192; one segment, positions counted from 2, Adam with bias correction, no clipping.
Ten masked copies of the data are the paper's static baseline (section 4.1). DOC-SENTENCES is slightly better in the
paper, which takes FULL-SENTENCES because its batches have a fixed number of rows. For the comparisons:

    --set "masking=StaticMasking(1)"                 static masking, one mask; StaticMasking(10) as in BERT
    --set stages.0.tasks.0.examples.join=never       DOC-SENTENCES
"""

from __future__ import annotations

from dataclasses import replace

from unmask.config.model_type import ModelType
from unmask.config.optim import AdamW, Linear, OptimConfig, WarmupFraction
from unmask.config.sizes import BASE, LARGE, Size
from unmask.data.corrupt.masking import MaskTokens, RandomTokens
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.row_plan import DynamicMasking
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.objectives.mlm import MLM
from unmask.recipes.bert import REPLACEMENT, bert, transformer_config
from unmask.tasks.recipe import Recipe, Stage, Task


def roberta(size: Size = BASE) -> Recipe:
    """RoBERTa as published."""
    cloze = Task(
        name="cloze",
        examples=Packed(DocumentBoundary.ACROSS),
        corruption=MaskTokens(RandomTokens(rate=0.15), REPLACEMENT),
        objectives=(MLM(),),
    )
    published = bert(size)
    # Table 9 of the paper: base and large differ in rate and warm-up (24,000 and 30,000 of 500,000 steps).
    # Its Adam is fairseq's, which corrects the bias.
    optimizer = AdamW(lr=4e-4 if size == LARGE else 6e-4, betas=(0.9, 0.98), bias_correction=True)
    warmup = WarmupFraction(0.06 if size == LARGE else 0.048)
    return replace(
        published,
        name="roberta",
        year=2019,
        paper="arXiv:1907.11692",
        title="RoBERTa: A Robustly Optimized BERT Pretraining Approach",
        summary="no next sentence, full rows, masks drawn at every visit",
        parent="bert",
        tokenizer=ByteBPE(),
        stages=(Stage(tasks=(cloze,), max_length=512, batch_size=8192),),
        # Positions begin behind the number of the padding token, 1; the norms are fairseq's.
        network=replace(transformer_config(size), num_segments=1, position_offset=2, norm_eps=1e-5),
        optim=OptimConfig(optimizer, Linear(warmup), max_grad_norm=0.0),
        masking=DynamicMasking(),
        model_type=ModelType.ROBERTA,
    )

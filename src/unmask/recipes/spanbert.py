"""SpanBERT: span masking and the span boundary objective (Joshi et al., 2019).

Changes from BERT: spans of words are masked, with lengths from a geometric distribution (p = 0.2, cut at 10, mean 3.8);
80 / 10 / 10 is decided once for a whole span; each token of a span is also predicted from the two tokens outside it
(SBO); one segment of one document, no next sentence, no short rows; dynamic masks; cased vocabulary.
SBO is two dense layers, each with GELU and a norm, over both boundary states and the position, which counts from the
left boundary; the output matrix is the token embedding (section 3.2). Spans never touch, so both boundaries are
visible. The released code draws random tokens from the corpus; here, as in every recipe, uniformly from all ordinary
tokens.
"""

from __future__ import annotations

from dataclasses import replace

from unmask.config.optim import AdamW, Linear, OptimConfig, WarmupFraction
from unmask.config.sizes import BASE, Size
from unmask.core.records import UnitKind
from unmask.data.corrupt.masking import MaskTokens, Replace, ReplaceBy, WholeUnits, geometric
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.row_plan import DynamicMasking
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.objectives.mlm import MLM
from unmask.objectives.sbo import SBO
from unmask.recipes.bert import bert
from unmask.tasks.recipe import Recipe, Stage, Task


def spanbert(size: Size = BASE) -> Recipe:
    """SpanBERT as published."""
    spans = Task(
        name="spans",
        examples=Packed(DocumentBoundary.NEVER),
        corruption=MaskTokens(
            WholeUnits(UnitKind.WORD, run_lengths=geometric(0.2, 10), rate=0.15),
            Replace(mask=0.8, random=0.1, keep=0.1, per=ReplaceBy.SPAN),
        ),
        objectives=(MLM(), SBO(position_width=200, max_span_tokens=15)),  # of the released command
    )
    return replace(
        bert(size),
        name="spanbert",
        year=2019,
        paper="arXiv:1907.10529",
        title="SpanBERT: Improving Pre-training by Representing and Predicting Spans",
        summary="spans of words, predicted from their borders too",
        parent="bert",
        tokenizer=WordPiece(size=28_996, lowercase=False, strip_accents=False),
        stages=(Stage(tasks=(spans,), max_length=512, batch_size=256),),
        # 10,000 of 2.4 million steps, with the Adam of fairseq; the paper's text says a decay of 0.1, the command 0.01.
        optim=OptimConfig(
            AdamW(lr=1e-4, eps=1e-8, bias_correction=True), Linear(WarmupFraction(1 / 240)), max_grad_norm=1.0
        ),
        masking=DynamicMasking(),
    )

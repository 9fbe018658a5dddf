"""BERT: masked language model and next-sentence prediction (Devlin et al., 2018).

The root of the family. 15 % of the tokens are selected; of these 80 % become [MASK], 10 % a random token, 10 % stay as
they are (section 3.1). The second segment is the true continuation or, half of the time, text from another document.
Masks are drawn once for each of 10 copies of the data. Nine steps in ten have rows of 128 tokens, the last tenth rows
of 512. The vocabulary is that of BERT-base-Chinese.
Two departures: the paper's ten copies also draw new pairs, here pairs are drawn once, and ten masks for each; and the
warm-up of 10,000 steps is a fraction of the paper's million steps, so that it fits any budget.
Another sentence-pair task for any member of pairs: `examples.negative=swapped` with `objectives.1.fact=order` is
sentence order, `both` with `pair` is both tasks in one, `objectives=MLM()` is none (docs/members has whole lines).
"""

from __future__ import annotations

from unmask.config.network import TransformerConfig
from unmask.config.optim import AdamW, DecayFrom, Linear, OptimConfig, WarmupFraction
from unmask.config.sizes import BASE, Size
from unmask.data.corrupt.masking import MaskTokens, RandomTokens, Replace
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.input_formats.row_plan import StaticMasking
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import NSP
from unmask.tasks.recipe import Recipe, Stage, Task

REPLACEMENT = Replace(mask=0.8, random=0.1, keep=0.1)
"""Of the chosen tokens (section 3.1 of the paper)."""


def bert(size: Size = BASE) -> Recipe:
    """BERT as published, in any of its sizes."""
    cloze = Task(
        name="cloze",
        examples=SegmentPairs(Negative.RANDOM, short_fraction=0.1),
        corruption=MaskTokens(RandomTokens(rate=0.15), REPLACEMENT),
        objectives=(MLM(), NSP),
    )
    return Recipe(
        name="bert",
        year=2018,
        paper="arXiv:1810.04805",
        title="BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
        summary="the root: tokens are masked, the next segment is judged",
        parent="",
        tokenizer=WordPiece(),
        stages=two_lengths(cloze, batch=256),
        network=transformer_config(size),
        optim=OptimConfig(AdamW(lr=1e-4), Linear(WarmupFraction(0.01), decay_from=DecayFrom.START), max_grad_norm=1.0),
        masking=StaticMasking(10),
    )


def transformer_config(size: Size) -> TransformerConfig:
    """The published network: norms after each sum, learned positions, exact GELU, dropout 0.1 everywhere."""
    return TransformerConfig(depth=size.depth, width=size.width, heads=size.heads, ffn_width=size.ffn_width)


def two_lengths(task: Task, batch: int) -> tuple[Stage, ...]:
    """Nine tenths of the steps on short rows, the rest on long ones (appendix A.2 of the paper)."""
    return (
        Stage(tasks=(task,), max_length=128, batch_size=batch, fraction=0.9),
        Stage(tasks=(task,), max_length=512, batch_size=batch, fraction=0.1),
    )

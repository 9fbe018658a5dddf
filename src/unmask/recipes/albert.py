"""ALBERT: a lite BERT (Lan et al., 2019).

Changes from BERT: all layers share one set of parameters, and token embeddings are 128 wide and projected up; the
second segment follows the first or the two are swapped, and the order is predicted (SOP); n-grams of 1 to 3 words are
masked, with probabilities in proportion to 1/n; a Unigram vocabulary; LAMB; no dropout, as in the second release; rows
of 512 tokens in batches of 4,096. A single sentence is cut in two; the released code gives it a random partner, which
turns SOP into next-sentence prediction there. Masks are drawn for 10 copies, as BERT's; the default of the released
code is 40.
Often overstated: sharing speeds training up by 1.2 (base) to 1.7 times (large), and a forward pass costs the same
(table 2); narrow embeddings cost quality only where layers do not share (table 3).

    --set network.sharing=attention     or feed_forward, all, none
    --set network.share_groups=4        four sets of layers, one after another; network.layers_per_group=2: two in turn
    --set network.embedding_width=0     embeddings as wide as the states, with no projection (the paper's E = 768)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from unmask.config.model_type import ModelType
from unmask.config.network import Activation, Sharing
from unmask.config.optim import LAMB, DecayFrom, Linear, OptimConfig, WarmupFraction
from unmask.config.sizes import BASE, Size
from unmask.config.sizes import SIZES as BERT_SIZES
from unmask.core.records import UnitKind
from unmask.data.corrupt.masking import MaskTokens, WholeUnits, inverse
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import SOP
from unmask.recipes.bert import REPLACEMENT, bert, transformer_config
from unmask.tasks.recipe import Recipe, Stage, Task

XLARGE = Size(depth=24, width=2048, heads=16, ffn_width=8192)
XXLARGE = Size(depth=12, width=4096, heads=64, ffn_width=16_384)
SIZES: Mapping[str, Size] = MappingProxyType({**BERT_SIZES, "xlarge": XLARGE, "xxlarge": XXLARGE})
"""From base on those of the paper (table 1); the smaller ones are BERT's."""


def albert(size: Size = BASE) -> Recipe:
    """ALBERT as published."""
    runs = Task(
        name="cloze",
        examples=SegmentPairs(Negative.SWAPPED, short_fraction=0.1),
        corruption=MaskTokens(
            WholeUnits(UnitKind.WORD, run_lengths=inverse(3), rate=0.15, inside=UnitKind.SENTENCE), REPLACEMENT
        ),
        objectives=(MLM(), SOP),
    )
    published = bert(size)
    return replace(
        published,
        name="albert",
        year=2019,
        paper="arXiv:1909.11942",
        title="ALBERT: A Lite BERT for Self-supervised Learning of Language Representations",
        summary="layers share their parameters, sentence order is told, runs of words",
        parent="bert",
        tokenizer=Unigram(size=30_000),
        stages=(Stage(tasks=(runs,), max_length=512, batch_size=4096),),
        network=replace(
            transformer_config(size),
            embedding_width=128,
            sharing=Sharing.ALL,
            activation=Activation.GELU_TANH,
            dropout=0.0,
            attention_dropout=0.0,
        ),
        # 3,125 of 125,000 steps.
        optim=OptimConfig(
            LAMB(lr=0.00176), Linear(WarmupFraction(0.025), decay_from=DecayFrom.START), max_grad_norm=1.0
        ),
        model_type=ModelType.ALBERT,
    )

"""T5: spans of the text become sentinels, and a decoder writes the spans (Raffel et al., 2020).

Changes from BERT: an encoder and a decoder, pre-norm with RMSNorm, no biases, ReLU, positions as 32 buckets of relative
distances (one table per stack, shared by its layers), attention without a scale, logits through the token table scaled
by width^-0.5. 15 % of the tokens are removed in spans of 3 on average, text first; each span leaves one sentinel, and
the target lists the spans after theirs. Rows hold text of one document and end with the end token alone; the decoder
begins with padding.
The paper trains 2^19 steps of 128 rows of 512 tokens with Adafactor at 1/sqrt(step), constant for the first 10,000.
Departures: Adam at the rate of the same schedule, scaled to it; rows hold 512 tokens before spans are removed, where
the released code cuts 568 so that 512 are left; no dropout inside the feed-forward layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from unmask.config.network import (
    Activation,
    EncoderDecoderConfig,
    Norm,
    NormKind,
    Positions,
    TransformerConfig,
    WeightInit,
)
from unmask.config.optim import AdamW, InverseSqrt, OptimConfig, WarmupFraction
from unmask.config.sizes import TINY, Size
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.row_plan import EOS_ONLY
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.objectives.seq2seq import Seq2SeqObjective
from unmask.tasks.recipe import Recipe, Stage, Task

SMALL = Size(depth=6, width=512, heads=8, ffn_width=2048)
BASE = Size(depth=12, width=768, heads=12, ffn_width=3072)
LARGE = Size(depth=24, width=1024, heads=16, ffn_width=4096)
SIZES: Mapping[str, Size] = MappingProxyType({"tiny": TINY, "small": SMALL, "base": BASE, "large": LARGE})
"""From small on those of the paper, depth for each stack; tiny is BERT's."""


def t5(size: Size = BASE) -> Recipe:
    """T5 as published."""
    spans = Task(
        name="spans",
        examples=Packed(DocumentBoundary.NEVER, template=EOS_ONLY),
        corruption=SpanCorruption(rate=0.15, mean_span_length=3.0),
        objectives=(Seq2SeqObjective(),),
    )
    stack = transformer_config(size)
    return Recipe(
        name="t5",
        year=2020,
        paper="arXiv:1910.10683",
        title="Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
        summary="spans become sentinels, a decoder writes the spans",
        parent="bert",
        tokenizer=Unigram(size=32_128, num_sentinels=100),
        stages=(Stage(tasks=(spans,), max_length=512, batch_size=128),),
        network=EncoderDecoderConfig(encoder=stack, decoder=stack, scale_logits=True),
        optim=OptimConfig(AdamW(lr=1e-3), InverseSqrt(WarmupFraction(10_000 / 2**19)), max_grad_norm=1.0),
    )


def transformer_config(size: Size) -> TransformerConfig:
    """One stack."""
    return TransformerConfig(
        depth=size.depth,
        width=size.width,
        heads=size.heads,
        ffn_width=size.ffn_width,
        num_segments=0,
        activation=Activation.RELU,
        norm=Norm.PRE,
        norm_kind=NormKind.RMS,
        bias=False,
        scale_attention=False,
        positions=Positions.RELATIVE_BUCKETS,
        norm_eps=1e-6,
        init=WeightInit.FAN_IN,
    )

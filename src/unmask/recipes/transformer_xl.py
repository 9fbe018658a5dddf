"""Transformer-XL: a language model with segment recurrence and relative positions (Dai et al., 2019).

Each layer also attends to its own input for the previous segment, without a gradient (section 3.2), so a prediction
depends on the memory length times the depth. Positions enter the attention scores as distances, in four terms
(section 3.3). The corpus is read as parallel streams, in order: row b of a step continues row b of the step before.
The sizes are those of the released code for enwik8: base has 12 layers of width 512, large 24 layers of width 1024; a
segment has 512 tokens, as many as the memory (large: 768). The vocabulary is bytes.
Departures: the last token of a segment predicts nothing (the first token of the next segment is not among its inputs);
embeddings are normed and not scaled by the root of the width; the sinusoids have no dropout; the streams are those of
a base run (22) at every size.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from unmask.config.attention_pattern import CAUSAL
from unmask.config.network import Activation, Positions, TransformerConfig
from unmask.config.optim import AdamW, Cosine, OptimConfig
from unmask.config.sizes import TINY, Size
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.input_formats.contiguous import ContiguousStreams
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.objectives.language_model import CLM
from unmask.tasks.recipe import Recipe, Stage, Task

BASE = Size(depth=12, width=512, heads=8, ffn_width=2048)
LARGE = Size(depth=24, width=1024, heads=8, ffn_width=3072)
SIZES: Mapping[str, Size] = MappingProxyType({"tiny": TINY, "base": BASE, "large": LARGE})
"""Base and large are those of the released code; tiny is BERT's."""
NUM_BYTES = 256 + 5
"""Bytes and special tokens."""
NUM_STREAMS, SEGMENT = 22, 512
"""Rows in a step, and tokens in a segment and in the memory (released code, enwik8 base)."""


def transformer_xl(size: Size = BASE) -> Recipe:
    """Transformer-XL as published for enwik8, in any of its sizes."""
    task = Task(
        name="streams",
        examples=ContiguousStreams(NUM_STREAMS),
        corruption=NoCorruption(),
        objectives=(CLM(),),
        attention=CAUSAL,
    )
    segment = SEGMENT if size != LARGE else 768
    return Recipe(
        name="transformer-xl",
        year=2019,
        paper="arXiv:1901.02860",
        title="Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context",
        summary="the segment before is kept as memory; positions are distances",
        parent="",
        tokenizer=ByteBPE(size=NUM_BYTES),
        stages=(Stage(tasks=(task,), max_length=segment, batch_size=NUM_STREAMS),),
        network=TransformerConfig(
            depth=size.depth,
            width=size.width,
            heads=size.heads,
            ffn_width=size.ffn_width,
            num_segments=1,
            activation=Activation.RELU,
            positions=Positions.RELATIVE_SINUSOIDAL,
            memory_length=segment,
            dropout=0.1 if size != LARGE else 0.15,
            attention_dropout=0.0,
            norm_eps=1e-5,
        ),
        optim=OptimConfig(
            AdamW(lr=2.5e-4, eps=1e-8, weight_decay=0.0, bias_correction=True), Cosine(), max_grad_norm=0.25
        ),
    )

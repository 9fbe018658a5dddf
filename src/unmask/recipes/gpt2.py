"""GPT-2: the next token from all tokens before it, in running text (Radford et al., 2019).

Changes from BERT: nothing is hidden, every position predicts its successor under a causal pattern, through the token
embedding itself without a bias. Pre-norm with a last norm, GELU in its tanh form, no segments, rows of 1,024 tokens.
Weights that write into the residual stream are initialized smaller by sqrt(2 * depth) (section 2.3: by the number of
residual layers), positions with half the deviation. Documents are joined by an end-of-text token alone and see each
other. Byte-level BPE of 50,257 entries; batches of 512 rows.
The paper names no schedule: rate, warm-up and decay are those of GPT-1. Departures: the end-of-text token is </s>, the
vocabulary has the other four special tokens of RoBERTa's too, rows end with a sentence where one ends, and an
end-of-text token also follows a document that goes on in the next row.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from unmask.config.attention_pattern import CAUSAL
from unmask.config.network import Activation, Norm, TransformerConfig, WeightInit
from unmask.config.optim import AdamW, Cosine, OptimConfig, WarmupFraction
from unmask.config.sizes import TINY, Size
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.row_plan import EOS_ONLY
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.objectives.language_model import CLM
from unmask.tasks.recipe import Recipe, Stage, Task

SMALL = Size(depth=12, width=768, heads=12, ffn_width=3072)
MEDIUM = Size(depth=24, width=1024, heads=16, ffn_width=4096)
LARGE = Size(depth=36, width=1280, heads=20, ffn_width=5120)
XL = Size(depth=48, width=1600, heads=25, ffn_width=6400)
SIZES: Mapping[str, Size] = MappingProxyType({"tiny": TINY, "small": SMALL, "medium": MEDIUM, "large": LARGE, "xl": XL})
"""From small on those of the paper (124,439,808, 354,823,168, 774,030,080 and 1,557,611,200 parameters)."""


def gpt2(size: Size = SMALL) -> Recipe:
    """GPT-2 as published."""
    text = Task(
        name="text",
        examples=Packed(DocumentBoundary.ACROSS, template=EOS_ONLY),
        corruption=NoCorruption(),
        objectives=(CLM(),),
        attention=CAUSAL,
    )
    return Recipe(
        name="gpt2",
        year=2019,
        paper="https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf",
        title="Language Models are Unsupervised Multitask Learners",
        summary="the next token from those before it, pre-norm",
        parent="bert",
        tokenizer=ByteBPE(size=50_257),
        stages=(Stage(tasks=(text,), max_length=1024, batch_size=512),),
        network=TransformerConfig(
            depth=size.depth,
            width=size.width,
            heads=size.heads,
            ffn_width=size.ffn_width,
            num_segments=0,
            activation=Activation.GELU_TANH,
            norm=Norm.PRE,
            norm_eps=1e-5,
            init=WeightInit.SCALED_RESIDUAL,
        ),
        optim=OptimConfig(AdamW(lr=2.5e-4, weight_decay=0.01), Cosine(WarmupFraction(0.002)), max_grad_norm=1.0),
    )

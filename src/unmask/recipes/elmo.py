"""ELMo: two LSTM language models, left to right and right to left, over shared token vectors (Peters et al., 2018).

Changes from BERT: no attention. Each direction predicts its next token from one side alone; the directions share the
token table, also as the output matrix, and nothing else, so that no layer sees the token that it predicts. Two layers
of 4,096 cells per direction are projected to 512 and joined by a residual connection. Rows hold sentences.
Departures: the paper builds token vectors from characters (a CNN with highway layers), trains with AdaGrad at 0.2,
samples 8,192 words for the softmax, clips cells at 3, and carries the state over to the next 20 tokens; here vectors
are a table of words or pieces, the optimizer is Adam, the softmax is full, and every row begins with an empty state.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from unmask.config.attention_pattern import BIDIRECTIONAL_LM
from unmask.config.network import LSTMConfig
from unmask.config.optim import AdamW, Constant, OptimConfig
from unmask.config.sizes import Size
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.objectives.language_model import BidirectionalLM
from unmask.tasks.recipe import Recipe, Stage, Task

TINY = Size(depth=2, width=128, heads=2, ffn_width=256)
ORIGINAL = Size(depth=2, width=1024, heads=2, ffn_width=4096)
SIZES: Mapping[str, Size] = MappingProxyType({"tiny": TINY, "original": ORIGINAL})
"""The width is that of both directions, the feed-forward width that of the cells."""


def elmo(size: Size = ORIGINAL) -> Recipe:
    """ELMo as published, over a token table."""
    both = Task(
        name="both-ways",
        examples=Packed(DocumentBoundary.NEVER),
        corruption=NoCorruption(),
        objectives=(BidirectionalLM(),),
        attention=BIDIRECTIONAL_LM,
    )
    return Recipe(
        name="elmo",
        year=2018,
        paper="arXiv:1802.05365",
        title="Deep contextualized word representations",
        summary="two LSTM language models, one for each direction",
        parent="",
        tokenizer=WordPiece(),
        stages=(Stage(tasks=(both,), max_length=128, batch_size=128),),
        network=LSTMConfig(depth=size.depth, direction_width=size.width // 2, cell_width=size.ffn_width),
        optim=OptimConfig(AdamW(lr=1e-3), Constant(), max_grad_norm=10.0),
    )

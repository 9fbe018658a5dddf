"""ELECTRA: predict which tokens were replaced (Clark et al., 2020).

Changes from BERT: a small generator fills the masks, and the network itself, the discriminator, predicts for *every*
token whether it is the original; no next sentence; rows of one length; dynamic masks. The generator shares the
discriminator's embeddings and is trained by maximum likelihood; nothing is adversarial. The paper masks all selected
tokens; in the released code, and here, 15 % of them stay as they are for the generator. That code draws positions with
replacement, so some rows have fewer; here every row has its full number.
The generator is a third as wide as the discriminator in base; the released small one is as wide as its discriminator.
`--set loss_weighting=learned` learns the loss weights, starting from 1 and 50. The ablations of the paper, below
`--set stages.0.tasks.0.`:
    objectives.1.judged_tokens=chosen      "ELECTRA 15%": only the selected tokens are classified
    objectives.1='MLM()'                   "Replace MLM": predict the selected tokens, which the inputs show replaced
    objectives.1='AllTokensMLM()'          "All-Tokens MLM": predict every token, with a gate for copying
    objectives.0.tie=none                  a generator with embeddings of its own; objectives.0.width=0.5: its size
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from unmask.config.model_type import ModelType
from unmask.config.network import Activation
from unmask.config.optim import AdamW, DecayFrom, Linear, LossWeighting, OptimConfig, WarmupFraction
from unmask.config.sizes import BASE, LARGE, MINI, TINY, Size
from unmask.data.corrupt.masking import MaskTokens, RandomTokens, Replace
from unmask.data.input_formats.row_plan import DynamicMasking
from unmask.data.input_formats.segments import OneOrTwoSegments
from unmask.objectives.generator import Generator
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD
from unmask.recipes.bert import bert, transformer_config
from unmask.tasks.recipe import Recipe, Stage, Task

SMALL = Size(depth=12, width=256, heads=4, ffn_width=1024)
SIZES: Mapping[str, Size] = MappingProxyType({"tiny": TINY, "mini": MINI, "small": SMALL, "base": BASE, "large": LARGE})
"""From small on those of the paper (table 6); tiny and mini are BERT's, trained like small."""
RTD_OBJECTIVE = RTD(weight=50.0)


def electra(
    size: Size = BASE, objective: Objective = RTD_OBJECTIVE, loss_weighting: LossWeighting = LossWeighting.FIXED
) -> Recipe:
    """ELECTRA as published; `objective` is what the discriminator learns."""
    # Table 6 of the paper: the generator's width, the share of chosen tokens, row length, batch, rate and steps.
    width, chosen, length, batch, rate, steps = {
        BASE: (1 / 3, 0.15, 512, 256, 2e-4, 766_000),
        LARGE: (1 / 4, 0.25, 512, 2048, 2e-4, 400_000),
    }.get(size, (1 / 4, 0.15, 128, 128, 5e-4, 1_000_000))
    detect = Task(
        name="detect",
        examples=OneOrTwoSegments(single_fraction=0.1, short_fraction=0.05),
        corruption=MaskTokens(RandomTokens(rate=chosen), Replace(mask=0.85, keep=0.15)),
        objectives=(Generator(width=width), objective),
    )
    published = bert(size)
    embedding = 0 if size in (BASE, LARGE) else 128
    return replace(
        published,
        name="electra",
        year=2020,
        paper="arXiv:2003.10555",
        title="ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators",
        summary="a generator fills in the blanks, every token is judged: own or replaced",
        parent="bert",
        stages=(Stage(tasks=(detect,), max_length=length, batch_size=batch),),
        network=replace(transformer_config(size), embedding_width=embedding, pooler_activation=Activation.GELU),
        optim=OptimConfig(AdamW(lr=rate), Linear(WarmupFraction(10_000 / steps), decay_from=DecayFrom.START)),
        masking=DynamicMasking(),
        loss_weighting=loss_weighting,
        model_type=ModelType.ELECTRA,
    )

"""ERNIE 1.0: phrase and entity masking, and dialogues (Sun et al., 2019).

Changes from BERT: characters are masked first, then whole phrases, then whole entities, each level in its own stage and
always 15 % of the tokens: where a row has too few phrases or entities, words outside of them fill up. Dialogues (DLM):
rows of several turns, in which the segment is the speaker, and one turn may be fake. Dynamic masks, ReLU, rows of 128
tokens, a vocabulary of 18,000.
Where paper and code differ: the paper has stages, but does not state how long each lasts: here a third. The released
code has none; for each file it masks units or characters at random, which is `ernie:mixed`, drawn for each row (half
and half). It draws once for each unit, so its rate varies; here the rate is exact. Its random second segments come from
a buffer, here from any document. It has no dialogues; their share of steps, 15.7 %, is that of the paper's best mix of
data. Its rows show three turns, here 2 to 4. `ernie:text` goes without dialogues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from unmask.config.model_type import ModelType
from unmask.config.network import Activation
from unmask.config.optim import AdamW, DecayFrom, Linear, OptimConfig, WarmupFraction
from unmask.config.sizes import BASE, Size
from unmask.core.records import UnitKind
from unmask.data.corrupt.masking import MaskTokens, OneOfSelectors, RandomTokens, Selector, WholeUnits
from unmask.data.input_formats.dialogues import Dialogues
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.input_formats.row_plan import DynamicMasking
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import DLM, NSP
from unmask.recipes.bert import REPLACEMENT, bert, transformer_config
from unmask.tasks.recipe import Recipe, Stage, Task

LEVELS: Mapping[str, Selector] = MappingProxyType(
    {
        "basic": RandomTokens(rate=0.15),
        "phrase": WholeUnits(UnitKind.PHRASE, rate=0.15),
        "entity": WholeUnits(UnitKind.ENTITY, rate=0.15),
    }
)
ADAM = AdamW(lr=1e-4, eps=1e-8, bias_correction=True)
MIXED = OneOfSelectors(tuple(LEVELS.values()), probabilities=(0.5, 0.25, 0.25))


def ernie(size: Size = BASE, levels: Mapping[str, Selector] = LEVELS, dialogue_fraction: float = 0.157) -> Recipe:
    """ERNIE as published: one stage for each level, and `dialogues` is the share of steps spent on conversations."""
    published = bert(size)
    return replace(
        published,
        name="ernie",
        year=2019,
        paper="arXiv:1904.09223",
        title="ERNIE: Enhanced Representation through Knowledge Integration",
        summary="whole phrases, then whole entities are masked; real or fake dialogues",
        parent="bert",
        tokenizer=WordPiece(size=18_000),
        stages=tuple(_stage(name, select, dialogue_fraction, 1 / len(levels)) for name, select in levels.items()),
        network=replace(transformer_config(size), activation=Activation.RELU, num_segments=4),
        # 5,000 of a million steps; Paddle's Adam.
        optim=OptimConfig(ADAM, Linear(WarmupFraction(0.005), decay_from=DecayFrom.START), max_grad_norm=1.0),
        masking=DynamicMasking(),
        model_type=ModelType.ERNIE,
    )


def mixed(size: Size = BASE) -> Recipe:
    """All levels at once, as in the released code."""
    return ernie(size, levels={"mixed": MIXED})


def text(size: Size = BASE) -> Recipe:
    """Without conversations."""
    return ernie(size, dialogue_fraction=0.0)


def _stage(name: str, select: Selector, dialogues: float, share: float) -> Stage:
    masked = MaskTokens(select, REPLACEMENT)
    cloze = Task(
        name=name,
        examples=SegmentPairs(Negative.RANDOM, short_fraction=0.1),
        corruption=masked,
        objectives=(MLM(), NSP),
    )
    talk = Task(name=f"{name}-dialogue", examples=Dialogues(), corruption=masked, objectives=(MLM(), DLM))
    alone = Stage(tasks=(cloze,), max_length=128, batch_size=512, fraction=share)  # 8,192 tokens on each of eight cards
    return replace(alone, tasks=(cloze, talk), task_weights=(1 - dialogues, dialogues)) if dialogues else alone

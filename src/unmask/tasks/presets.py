"""Presets: named pre-training tasks (what is hidden and predicted) over rows of one document each.

They can be walked and audited without the network and schedule of a member.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unmask.config.attention_pattern import CAUSAL, FULL, XLNET_STREAMS, AttentionPattern
from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.data.corrupt.compose import NoiseSequence
from unmask.data.corrupt.document_rotation import DocumentRotation
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.corrupt.masking import (
    MaskTokens,
    RandomTokens,
    Replace,
    ReplaceBy,
    Selector,
    WholeUnits,
    geometric,
    inverse,
)
from unmask.data.corrupt.mass_fragment import MassFragment
from unmask.data.corrupt.protocol import Corruption
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.objectives.language_model import CLM, PLM
from unmask.objectives.mlm import MLM
from unmask.objectives.protocol import Objective
from unmask.objectives.sbo import SBO
from unmask.objectives.seq2seq import Seq2SeqObjective
from unmask.tasks.recipe import Task

_RUN_LENGTHS = (0.4, 0.3, 0.2, 0.1)
"""How often 1, 2, 3 or 4 words are taken together (MacBERT, section 3.1)."""
_BERT_REPLACEMENT = Replace(mask=0.8, random=0.1, keep=0.1)
"""What stands at the chosen tokens (BERT, section 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named task with its description."""

    name: str
    chinese_name: str
    """What the rule is called in Chinese."""
    description: str
    """The rule in one line."""
    paper: str
    """The member that introduced it, and where."""
    task: Task


def preset(name: str) -> Task:
    """The task of a preset, by name."""
    return find_preset(name).task


def find_preset(name: str) -> Preset:
    """A preset by name, with its description."""
    known = {found.name: found for found in presets()}
    if name not in known:
        raise RecipeError(f"There is no rule '{name}'. There are: {', '.join(known)}.")
    return known[name]


def presets() -> tuple[Preset, ...]:
    """Every preset: masking, then denoising, then language models."""
    return (*_clozes(), *_denoisings(), *_language_models())


def _clozes() -> tuple[Preset, ...]:
    bert, wwm, macbert = "BERT, arXiv:1810.04805", "BERT-wwm, arXiv:1906.08101", "MacBERT, arXiv:2004.13922"
    albert, spanbert, ernie = "ALBERT, arXiv:1909.11942", "SpanBERT, arXiv:1907.10529", "ERNIE, arXiv:1904.09223"
    ngrams = WholeUnits(UnitKind.WORD, run_lengths=_RUN_LENGTHS, inside=UnitKind.SENTENCE)
    inverse_ngrams = WholeUnits(UnitKind.WORD, run_lengths=inverse(3), inside=UnitKind.SENTENCE)
    spans = WholeUnits(UnitKind.WORD, run_lengths=geometric(0.2, 10))
    similar = Replace(similar=0.8, random=0.1, keep=0.1, per=ReplaceBy.WORD)
    return (
        _cloze("token", "字遮盖", "single tokens are masked", bert, RandomTokens()),
        _cloze("word", "全词遮盖", "whole words are masked, never half of one", wwm, WholeUnits()),
        _cloze("ngram", "N-gram 遮盖", "runs of 1 to 4 words are masked (40/30/20/10 %)", macbert, ngrams),
        _cloze("ngram-inverse", "N-gram 遮盖", "runs of 1 to 3 words, in proportion to 1/n", albert, inverse_ngrams),
        Preset(
            name="span",
            chinese_name="片段遮盖",
            description="spans of words, Geo(0.2) cut at 10, mean 3.8",
            paper=spanbert,
            task=_task("span", MaskTokens(spans, replace(_BERT_REPLACEMENT, per=ReplaceBy.SPAN)), MLM(), SBO()),
        ),
        _cloze("phrase", "短语遮盖", "whole phrases are masked; words fill up", ernie, WholeUnits(UnitKind.PHRASE)),
        _cloze("entity", "实体遮盖", "whole entities are masked; words fill up", ernie, WholeUnits(UnitKind.ENTITY)),
        _cloze("similar", "近义词替换", "similar words stand in for chosen ones", macbert, ngrams, similar),
    )


def _denoisings() -> tuple[Preset, ...]:
    t5, bart, mass = "T5, arXiv:1910.10683", "BART, arXiv:1910.13461", "MASS, arXiv:1905.02450"
    both = NoiseSequence((PermuteSentences(), TextInfilling()))
    return (
        _denoising("t5", "片段换成哨兵", "spans become sentinels; the spans are written out", t5, SpanCorruption()),
        _denoising("bart", "打乱并填充", "sentences permuted, then spans infilled", bart, both),
        _denoising("infill", "文本填充", "a span of any length, even none, becomes one mask", bart, TextInfilling()),
        _denoising("delete", "删除", "tokens vanish without a trace", bart, TokenDeletion()),
        _denoising("permute", "句子打乱", "the sentences change places", bart, PermuteSentences()),
        _denoising("rotate", "文档旋转", "the text begins at a random token", bart, DocumentRotation()),
        _denoising("mass", "连续片段", "half of the text is hidden in one piece and written out", mass, MassFragment()),
    )


def _language_models() -> tuple[Preset, ...]:
    xlnet, gpt = "XLNet, arXiv:1906.08237", "GPT, Radford et al. 2018"
    drawn = _task("xlnet", PermutationOrder(), PLM(), attention=XLNET_STREAMS)
    ahead = _task("gpt", NoCorruption(), CLM(), attention=CAUSAL)
    order, following = "tokens are predicted in a drawn order", "every token is predicted from those before it"
    return (
        Preset(name="xlnet", chinese_name="排列语言模型", description=order, paper=xlnet, task=drawn),
        Preset(name="gpt", chinese_name="从左到右", description=following, paper=gpt, task=ahead),
    )


def _cloze(
    name: str,
    chinese_name: str,
    description: str,
    paper: str,
    select: Selector,
    replacement: Replace = _BERT_REPLACEMENT,
) -> Preset:
    task = _task(name, MaskTokens(select, replacement), MLM())
    return Preset(name=name, chinese_name=chinese_name, description=description, paper=paper, task=task)


def _denoising(name: str, chinese_name: str, description: str, paper: str, corruption: Corruption) -> Preset:
    return Preset(
        name=name,
        chinese_name=chinese_name,
        description=description,
        paper=paper,
        task=_task(name, corruption, Seq2SeqObjective()),
    )


def _task(name: str, corruption: Corruption, *objectives: Objective, attention: AttentionPattern = FULL) -> Task:
    return Task(
        name=name,
        examples=Packed(DocumentBoundary.NEVER),
        corruption=corruption,
        objectives=objectives,
        attention=attention,
    )

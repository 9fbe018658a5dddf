"""Bare rules: what is hidden and what must be said, without the network and the schedule of a member.

What arrives: a name typed at the command line. What leaves: a `Task` made of parts, over rows of one document each.
What never happens here: a rule that only a name can reach. Each one is a line of parts that anyone can write.

A rule can be walked and audited before the member that uses it exists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unmask.corrupt.delete import Delete
from unmask.corrupt.fragment import Fragment
from unmask.corrupt.infill import Infill
from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.noise import Noise
from unmask.corrupt.nothing import Nothing
from unmask.corrupt.order import Order
from unmask.corrupt.part import Corrupt
from unmask.corrupt.permute import PermuteSentences
from unmask.corrupt.replace import Per, Replace
from unmask.corrupt.rotate import Rotate
from unmask.corrupt.select import Select, Tokens, Units, geometric, inverse
from unmask.corrupt.sentinels import Sentinels
from unmask.errors import RecipeError
from unmask.examples.packed import Join, Packed
from unmask.objectives.language import CLM, PLM, WriteOut
from unmask.objectives.mlm import MLM
from unmask.objectives.part import Objective
from unmask.objectives.sbo import SBO
from unmask.records import Layer
from unmask.tasks import Task
from unmask.views import CAUSAL, ENCODER, TWO_STREAMS, View

_RUNS = (0.4, 0.3, 0.2, 0.1)
"""How often 1, 2, 3 or 4 words are taken together (MacBERT, section 3.1)."""
_SHOW = Replace(mask=0.8, random=0.1, keep=0.1)
"""What stands at the chosen tokens (BERT, section 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BareRule:
    """A rule with the words that introduce it."""

    name: str
    term: str
    """What the rule is called in Chinese."""
    says: str
    """The rule in one line."""
    paper: str
    """The member that introduced it, and where."""
    task: Task


def rule(name: str) -> Task:
    """The task of a bare rule, by name."""
    return bare_rule(name).task


def bare_rule(name: str) -> BareRule:
    """A bare rule by name, with its description."""
    known = {found.name: found for found in rules()}
    if name not in known:
        raise RecipeError(f"There is no rule '{name}'. There are: {', '.join(known)}.")
    return known[name]


def rules() -> tuple[BareRule, ...]:
    """Every bare rule: those that fill holes first, then those that rewrite, then those that only order or wait."""
    return (*_clozes(), *_rewritings(), *_language_models())


def _clozes() -> tuple[BareRule, ...]:
    bert, wwm, macbert = "BERT, arXiv:1810.04805", "BERT-wwm, arXiv:1906.08101", "MacBERT, arXiv:2004.13922"
    albert, spanbert, ernie = "ALBERT, arXiv:1909.11942", "SpanBERT, arXiv:1907.10529", "ERNIE, arXiv:1904.09223"
    ngrams = Units(Layer.WORD, run=_RUNS, inside=Layer.SENTENCE)
    inverse_ngrams = Units(Layer.WORD, run=inverse(3), inside=Layer.SENTENCE)
    spans = Units(Layer.WORD, run=geometric(0.2, 10))
    similar = Replace(similar=0.8, random=0.1, keep=0.1, per=Per.WORD)
    return (
        _cloze("token", "字遮盖", "single tokens are masked", bert, Tokens()),
        _cloze("word", "全词遮盖", "whole words are masked, never half of one", wwm, Units()),
        _cloze("ngram", "N-gram 遮盖", "runs of 1 to 4 words are masked (40/30/20/10 %)", macbert, ngrams),
        _cloze("ngram-inverse", "N-gram 遮盖", "runs of 1 to 3 words, in proportion to 1/n", albert, inverse_ngrams),
        BareRule(
            name="span",
            term="片段遮盖",
            says="spans of words, Geo(0.2) cut at 10, mean 3.8",
            paper=spanbert,
            task=_task("span", MaskOut(spans, replace(_SHOW, per=Per.SPAN)), MLM(), SBO()),
        ),
        _cloze("phrase", "短语遮盖", "whole phrases are masked; words fill up", ernie, Units(Layer.PHRASE)),
        _cloze("entity", "实体遮盖", "whole entities are masked; words fill up", ernie, Units(Layer.ENTITY)),
        _cloze("similar", "近义词替换", "similar words stand in for chosen ones", macbert, ngrams, similar),
    )


def _rewritings() -> tuple[BareRule, ...]:
    t5, bart, mass = "T5, arXiv:1910.10683", "BART, arXiv:1910.13461", "MASS, arXiv:1905.02450"
    both = Noise((PermuteSentences(), Infill()))
    return (
        _rewriting("t5", "片段换成哨兵", "spans become sentinels; the spans are written out", t5, Sentinels()),
        _rewriting("bart", "打乱并填充", "sentences permuted, then spans infilled", bart, both),
        _rewriting("infill", "文本填充", "a span of any length, even none, becomes one mask", bart, Infill()),
        _rewriting("delete", "删除", "tokens vanish without a trace", bart, Delete()),
        _rewriting("permute", "句子打乱", "the sentences change places", bart, PermuteSentences()),
        _rewriting("rotate", "文档旋转", "the text begins at a random token", bart, Rotate()),
        _rewriting("mass", "连续片段", "half of the text is hidden in one piece and written out", mass, Fragment()),
    )


def _language_models() -> tuple[BareRule, ...]:
    xlnet, gpt = "XLNet, arXiv:1906.08237", "GPT, Radford et al. 2018"
    drawn = _task("xlnet", Order(), PLM(), view=TWO_STREAMS)
    ahead = _task("gpt", Nothing(), CLM(), view=CAUSAL)
    order, following = "tokens are said in a drawn order", "every token is said from those before it"
    return (
        BareRule(name="xlnet", term="排列语言模型", says=order, paper=xlnet, task=drawn),
        BareRule(name="gpt", term="从左到右", says=following, paper=gpt, task=ahead),
    )


def _cloze(name: str, term: str, says: str, paper: str, select: Select, show: Replace = _SHOW) -> BareRule:
    task = _task(name, MaskOut(select, show), MLM())
    return BareRule(name=name, term=term, says=says, paper=paper, task=task)


def _rewriting(name: str, term: str, says: str, paper: str, corrupt: Corrupt) -> BareRule:
    return BareRule(name=name, term=term, says=says, paper=paper, task=_task(name, corrupt, WriteOut()))


def _task(name: str, corrupt: Corrupt, *learns: Objective, view: View = ENCODER) -> Task:
    return Task(name=name, examples=Packed(Join.NEVER), corrupt=corrupt, learns=learns, view=view)

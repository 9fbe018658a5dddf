"""The claims that `bench/claims.py` tries again: what was said, by which arms it is tried, and what is expected.

An arm is what `unmask pretrain` is told beyond text, size, budget and seed: a member, and changes of its recipe.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass

_TASK = "--set=stages.*.tasks.0."
_SHOW = f"{_TASK}corrupt.replace."


@dataclass(frozen=True)
class Expect:
    """One arm does more than another on some measurement; or both do the same, but for `equal`."""

    measure: str
    """A name, or a pattern such as `*-full`."""
    more: str
    less: str
    """An arm, or a number: what a guess would have."""
    equal: float = 0.0

    def fits(self, name: str) -> bool:
        """Whether a measurement is meant."""
        return fnmatch.fnmatch(name, self.measure)

    def told(self) -> str:
        """The expectation in words."""
        return f"{self.more} {'about as much as' if self.equal else 'more than'} {self.less}"


@dataclass(frozen=True)
class Claim:
    """What was claimed, and how it is tried."""

    says: str
    published: str
    arms: Mapping[str, str]
    expects: tuple[Expect, ...]
    probes: tuple[str, ...] = ()
    policies: tuple[str, ...] = ("full",)
    """How the tasks of the user are tuned."""
    tasks: str = ""
    """What tasks are needed; nothing where none is."""
    tokens: int = 30_000_000
    """What every arm learns from, unless the user says otherwise."""
    flops: float = 0.0
    """The same in operations, if it is a claim about equal ones."""
    cut: int = 0
    """Tokens of the corpus that are learned from again and again; 0: all of it."""
    timed: bool = False
    """Whether it is also a claim about the time of a step."""


def _each(measure: str, *ordered: str) -> tuple[Expect, ...]:
    """The first more than every other."""
    return tuple(Expect(measure, ordered[0], other) for other in ordered[1:])


CLAIMS: Mapping[str, Claim] = {
    "sop": Claim(
        says=(
            "Who learns next-sentence prediction cannot tell the order of two segments; who learns the order can half "
            "do the other."
        ),
        published=(
            "ALBERT, table 5 (NSP / SOP): who learned NSP 90.5 / 52.0, who learned SOP 78.9 / 86.5, neither 52.4 / 53.3"
        ),
        arms={
            "nsp": "bert",
            "sop": f"bert {_TASK}examples.negative=swapped {_TASK}learns.1.truth=order",
            "none": f"bert {_TASK}learns=MLM()",
        },
        expects=(
            Expect("head order", "nsp", "0.5", equal=0.05),
            Expect("head next", "sop", "0.5"),
            Expect("head order", "sop", "nsp"),
            Expect("head next", "nsp", "sop"),
            Expect("order-frozen", "sop", "nsp"),
            Expect("order-frozen", "nsp", "none", equal=0.03),
            Expect("next-frozen", "sop", "none"),
        ),
        probes=("pairs", "head"),
    ),
    "all-tokens": Claim(
        says="ELECTRA gains by learning from all tokens, not by its question.",
        published=(
            "ELECTRA, table 5 (GLUE): ELECTRA 85.0, All-Tokens MLM 84.3, Replace MLM 82.4, ELECTRA 15 % 82.4, BERT 82.2"
        ),
        arms={
            "electra": "electra",
            "every": f"electra {_TASK}learns.1=Every()",
            "replace": f"electra {_TASK}learns.1=MLM()",
            "chosen": f"electra {_TASK}learns.1.where=chosen",
            "bert": f"electra {_TASK}learns=MLM() {_SHOW}mask=0.8 {_SHOW}random=0.1 {_SHOW}keep=0.1",
            "balanced": "electra --set=balance=learned",
        },
        expects=(
            *_each("*-full", "electra", "every", "replace", "chosen", "bert"),
            *_each("*-full", "every", "replace", "chosen", "bert"),
            *_each("*-frozen", "electra", "chosen", "bert"),
            # Nobody has published this one: the weights of the two losses are learned instead of 1 and 50.
            *_each("*-full", "balanced", "electra"),
            *_each("*-frozen", "balanced", "electra"),
        ),
        policies=("full", "frozen"),
        tasks="Two or three tasks of classes or pairs, for example.",
        flops=6e14,
    ),
    "sharing": Claim(
        says="Sharing feed-forward layers costs quality, sharing attention hardly any; a step takes as long.",
        published=(
            "ALBERT, table 4 (E = 128): nothing shared 81.6 (89 M), attention 81.7 (64 M), feed-forward 80.2 (38 M), "
            "all 80.1 (12 M)"
        ),
        arms={
            mode: f"albert --set=trunk.sharing={mode} --set=trunk.embedding=128"
            for mode in ("none", "attention", "feed_forward", "all")
        },
        expects=(
            Expect("mlm loss", "feed_forward", "attention"),
            Expect("mlm loss", "attention", "none", equal=0.05),
            Expect("mlm loss", "all", "feed_forward", equal=0.05),
            Expect("*-full", "attention", "feed_forward"),
            Expect("step beside none", "all", "none", equal=0.1),
        ),
        timed=True,
    ),
    "spans": Claim(
        says="Spans with their borders beat tokens where spans are to be found.",
        published=(
            "SpanBERT, tables 6 and 7 (SQuAD 2, F1): tokens 83.8, words 84.3, geometric spans 85.4; of one segment "
            "86.7, with SBO 86.8"
        ),
        arms={
            "tokens": f"spanbert {_TASK}corrupt.select=Tokens() {_TASK}corrupt.replace.per=token {_TASK}learns=MLM()",
            "words": f"spanbert {_TASK}corrupt.select.run=1.0 {_TASK}learns=MLM()",
            "spans": f"spanbert {_TASK}learns=MLM()",
            "borders": "spanbert",
        },
        expects=(
            *_each("*-full", "spans", "tokens"),
            *_each("*-full", "borders", "tokens", "spans"),
            *_each("border right", "borders", "tokens", "words", "spans"),
            Expect("mlm right", "tokens", "spans"),
        ),
        probes=("border",),
        tasks="A SQuAD or CMRC file, for example.",
    ),
    "masking": Claim(
        says="Masks drawn anew at every visit are as good as ten copies, and better when text is seen often.",
        published=(
            "RoBERTa, table 1 (SQuAD 2 / MNLI / SST-2): ten static copies 78.3 / 84.3 / 92.5, dynamic 78.7 / 84.0 / "
            "92.9"
        ),
        arms={
            "static-1": "bert --set=renew.count=1",
            "static-10": "bert --set=renew.count=10",
            "dynamic": "bert --set=renew=EveryVisit()",
        },
        expects=(
            Expect("mlm loss", "static-1", "dynamic"),
            Expect("mlm loss", "static-1", "static-10"),
            Expect("mlm loss", "static-10", "dynamic", equal=0.03),
            Expect("mlm least loss", "static-1", "dynamic"),
            Expect("mlm least loss", "static-10", "dynamic", equal=0.03),
        ),
        cut=300_000,
    ),
    "formats": Claim(
        says="Without next-sentence prediction nothing is lost if rows are running text; sentences are too short.",
        published=(
            "RoBERTa, table 2 (SQuAD 2 / MNLI / RACE): segment pairs 78.7 / 84.0 / 64.2, sentence pairs 76.2 / 82.9 / "
            "63.0, full 79.1 / 84.7 / 64.8, one document 79.7 / 84.7 / 65.6"
        ),
        arms={
            "segments": "bert --set=renew=EveryVisit()",
            "sentences": f"bert --set=renew=EveryVisit() {_TASK}examples.grain=sentence",
            "full": f"bert --set=renew=EveryVisit() {_TASK}examples=Packed(join=across) {_TASK}learns=MLM()",
            "document": f"bert --set=renew=EveryVisit() {_TASK}examples=Packed(join=never) {_TASK}learns=MLM()",
        },
        expects=(
            *_each("far", "segments", "sentences"),
            *_each("far", "full", "segments", "sentences"),
            *_each("far", "document", "sentences"),
            *_each("*-full", "full", "segments", "sentences"),
        ),
        probes=("far",),
    ),
    "replacement": Claim(
        says="Who is shown similar words instead of masks corrects better.",
        published=(
            "MacBERT (CMRC, DRCD): similar words > random words > [MASK]; all tasks 87.18, without similar words 86.88"
        ),
        arms={
            "similar": "macbert",
            "random": f"macbert {_SHOW}similar=0 {_SHOW}random=0.9",
            "masks": f"macbert {_SHOW}similar=0 {_SHOW}mask=0.8",
            "all-masks": f"macbert {_SHOW}similar=0 {_SHOW}random=0 {_SHOW}mask=0.9",
        },
        expects=(
            *_each("correction, similar", "similar", "random", "masks", "all-masks"),
            *_each("correction, random", "similar", "random", "masks", "all-masks"),
            *_each("correction, random", "random", "masks", "all-masks"),
            *_each("*-full", "similar", "masks"),
        ),
        probes=("correct",),
    ),
}

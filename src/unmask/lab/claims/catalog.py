"""The claims of papers that `unmask claim` tries again: arms, measurements and expected outcomes.

An arm is a member with changes of its recipe, as words for `unmask pretrain`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass

_TASK = "--set=stages.*.tasks.0."
_DYNAMIC = "bert --set=masking=DynamicMasking()"
_REPLACE = f"{_TASK}corruption.replace."


@dataclass(frozen=True)
class Expectation:
    """An expected outcome: one arm is higher than another on a measurement, or both are equal within a tolerance."""

    measure: str
    """The name of a measurement, or a pattern such as `*-full`."""
    higher: str
    lower: str
    """An arm, or a number (the score of random guessing)."""
    tolerance: float = 0.0
    """Positive: the arms are expected to be equal within this difference."""

    def fits(self, name: str) -> bool:
        """Whether a measurement matches the pattern."""
        return fnmatch.fnmatch(name, self.measure)

    def describe(self) -> str:
        """The expectation in words."""
        return f"{self.higher} {'about equal to' if self.tolerance else 'higher than'} {self.lower}"


@dataclass(frozen=True)
class Claim:
    """A published claim and the experiment that tries it."""

    statement: str
    published: str
    """The published figures."""
    arms: Mapping[str, str]
    expectations: tuple[Expectation, ...]
    probes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("full",)
    """Fine-tuning methods for the user's tasks."""
    needed_tasks: str = ""
    """The kind of tasks that the claim needs; empty if it needs none."""
    tokens: int = 30_000_000
    """The default budget of each arm in tokens."""
    flops: float = 0.0
    """The default budget in FLOPs, for a claim about equal compute; 0 otherwise."""
    subset_tokens: int = 0
    """The size of the repeated part of the corpus, in tokens; 0: the whole corpus."""
    times_steps: bool = False
    """Whether the claim is also about the time of a step."""


def _each(measure: str, *ordered: str) -> tuple[Expectation, ...]:
    """The first arm is higher than each of the others."""
    return tuple(Expectation(measure, ordered[0], other) for other in ordered[1:])


CLAIMS: Mapping[str, Claim] = {
    "sop": Claim(
        statement=(
            "A network trained with next-sentence prediction cannot tell the order of two segments; a network trained "
            "with sentence-order prediction can partly do next-sentence prediction."
        ),
        published=(
            "ALBERT, table 5 (NSP / SOP): trained with NSP 90.5 / 52.0, with SOP 78.9 / 86.5, with neither 52.4 / 53.3"
        ),
        arms={
            "nsp": "bert",
            "sop": f"bert {_TASK}examples.negative=swapped {_TASK}objectives.1.fact=order",
            "none": f"bert {_TASK}objectives=MLM()",
        },
        expectations=(
            Expectation("head order", "nsp", "0.5", tolerance=0.05),
            Expectation("head next", "sop", "0.5"),
            Expectation("head order", "sop", "nsp"),
            Expectation("head next", "nsp", "sop"),
            Expectation("order-frozen", "sop", "nsp"),
            Expectation("order-frozen", "nsp", "none", tolerance=0.03),
            Expectation("next-frozen", "sop", "none"),
        ),
        probes=("pairs", "head"),
    ),
    "all-tokens": Claim(
        statement="ELECTRA gains from its loss over all tokens, not from replaced-token detection as such.",
        published=(
            "ELECTRA, table 5 (GLUE): ELECTRA 85.0, All-Tokens MLM 84.3, Replace MLM 82.4, ELECTRA 15 % 82.4, BERT 82.2"
        ),
        arms={
            "electra": "electra",
            "every": f"electra {_TASK}objectives.1=AllTokensMLM()",
            "replace": f"electra {_TASK}objectives.1=MLM()",
            "chosen": f"electra {_TASK}objectives.1.judged_tokens=chosen",
            "bert": f"electra {_TASK}objectives=MLM() {_REPLACE}mask=0.8 {_REPLACE}random=0.1 {_REPLACE}keep=0.1",
            "balanced": "electra --set=loss_weighting=learned",
        },
        expectations=(
            *_each("*-full", "electra", "every", "replace", "chosen", "bert"),
            *_each("*-full", "every", "replace", "chosen", "bert"),
            *_each("*-frozen", "electra", "chosen", "bert"),
            # Not a published comparison: the two loss weights are learned instead of fixed at 1 and 50.
            *_each("*-full", "balanced", "electra"),
            *_each("*-frozen", "balanced", "electra"),
        ),
        methods=("full", "frozen"),
        needed_tasks="Two or three tasks of classes or pairs, for example.",
        flops=6e14,
    ),
    "sharing": Claim(
        statement=(
            "Sharing feed-forward layers costs quality, sharing attention hardly any; a step takes the same time."
        ),
        published=(
            "ALBERT, table 4 (E = 128): nothing shared 81.6 (89 M), attention 81.7 (64 M), feed-forward 80.2 (38 M), "
            "all 80.1 (12 M)"
        ),
        arms={
            mode: f"albert --set=network.sharing={mode} --set=network.embedding_width=128"
            for mode in ("none", "attention", "feed_forward", "all")
        },
        expectations=(
            Expectation("mlm loss", "feed_forward", "attention"),
            Expectation("mlm loss", "attention", "none", tolerance=0.05),
            Expectation("mlm loss", "all", "feed_forward", tolerance=0.05),
            Expectation("*-full", "attention", "feed_forward"),
            Expectation("step time / none", "all", "none", tolerance=0.1),
        ),
        times_steps=True,
    ),
    "spans": Claim(
        statement="Span masking with the span-boundary objective beats token masking on span extraction.",
        published=(
            "SpanBERT, tables 6 and 7 (SQuAD 2, F1): tokens 83.8, words 84.3, geometric spans 85.4; of one segment "
            "86.7, with SBO 86.8"
        ),
        arms={
            "tokens": (f"spanbert {_TASK}corruption.select=RandomTokens() {_REPLACE}per=token {_TASK}objectives=MLM()"),
            "words": f"spanbert {_TASK}corruption.select.run_lengths=1.0 {_TASK}objectives=MLM()",
            "spans": f"spanbert {_TASK}objectives=MLM()",
            "borders": "spanbert",
        },
        expectations=(
            *_each("*-full", "spans", "tokens"),
            *_each("*-full", "borders", "tokens", "spans"),
            *_each("border right", "borders", "tokens", "words", "spans"),
            Expectation("mlm right", "tokens", "spans"),
        ),
        probes=("border",),
        needed_tasks="A SQuAD or CMRC file, for example.",
    ),
    "masking": Claim(
        statement="Dynamic masking is as good as ten static copies, and better when text is repeated often.",
        published=(
            "RoBERTa, table 1 (SQuAD 2 / MNLI / SST-2): ten static copies 78.3 / 84.3 / 92.5, dynamic 78.7 / 84.0 / "
            "92.9"
        ),
        arms={
            "static-1": "bert --set=masking=StaticMasking(num_copies=1)",
            "static-10": "bert --set=masking=StaticMasking(num_copies=10)",
            "dynamic": _DYNAMIC,
        },
        expectations=(
            Expectation("mlm loss", "static-1", "dynamic"),
            Expectation("mlm loss", "static-1", "static-10"),
            Expectation("mlm loss", "static-10", "dynamic", tolerance=0.03),
            Expectation("mlm least loss", "static-1", "dynamic"),
            Expectation("mlm least loss", "static-10", "dynamic", tolerance=0.03),
        ),
        subset_tokens=300_000,
    ),
    "formats": Claim(
        statement=(
            "Without next-sentence prediction nothing is lost if rows are running text; single sentences are too short."
        ),
        published=(
            "RoBERTa, table 2 (SQuAD 2 / MNLI / RACE): segment pairs 78.7 / 84.0 / 64.2, sentence pairs 76.2 / 82.9 / "
            "63.0, full 79.1 / 84.7 / 64.8, one document 79.7 / 84.7 / 65.6"
        ),
        arms={
            "segments": _DYNAMIC,
            "sentences": f"{_DYNAMIC} {_TASK}examples.grain=sentence",
            "full": f"{_DYNAMIC} {_TASK}examples=Packed(join=across) {_TASK}objectives=MLM()",
            "document": f"{_DYNAMIC} {_TASK}examples=Packed(join=never) {_TASK}objectives=MLM()",
        },
        expectations=(
            *_each("far", "segments", "sentences"),
            *_each("far", "full", "segments", "sentences"),
            *_each("far", "document", "sentences"),
            *_each("*-full", "full", "segments", "sentences"),
        ),
        probes=("far",),
    ),
    "replacement": Claim(
        statement="Similar words instead of [MASK] tokens make a network better at text correction.",
        published=(
            "MacBERT (CMRC, DRCD): similar words > random words > [MASK]; all tasks 87.18, without similar words 86.88"
        ),
        arms={
            "similar": "macbert",
            "random": f"macbert {_REPLACE}similar=0 {_REPLACE}random=0.9",
            "masks": f"macbert {_REPLACE}similar=0 {_REPLACE}mask=0.8",
            "all-masks": f"macbert {_REPLACE}similar=0 {_REPLACE}random=0 {_REPLACE}mask=0.9",
        },
        expectations=(
            *_each("correction, similar", "similar", "random", "masks", "all-masks"),
            *_each("correction, random", "similar", "random", "masks", "all-masks"),
            *_each("correction, random", "random", "masks", "all-masks"),
            *_each("*-full", "similar", "masks"),
        ),
        probes=("correct",),
    ),
}

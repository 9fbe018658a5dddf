"""Sound rules hold, and every kind of fault is found: an audit that cannot say no is worth nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from unmask.audits.audit import audit
from unmask.audits.finding import Verdict
from unmask.core.errors import CorpusError, RecipeError
from unmask.core.records import PermutedTarget, Spans, UnitKind
from unmask.core.rng import Key
from unmask.data.corrupt.document_rotation import DocumentRotation
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.corrupt.masking import MaskTokens, OneOfSelectors, RandomTokens, Replace, ReplaceBy, WholeUnits
from unmask.data.corrupt.mass_fragment import MassFragment
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.input_formats.row_plan import DynamicMasking, StaticMasking
from unmask.data.tokenize.similar_word_table import NO_SIMILAR_WORDS, SimilarWords
from unmask.members import members
from unmask.objectives.mlm import MLM
from unmask.tasks.presets import preset, presets
from unmask.tasks.recipe import Task

KEY = Key.of(5)
RUNS = (0.4, 0.3, 0.2, 0.1)


SHOW = Replace(mask=0.8, random=0.1, keep=0.1)
ONCE = {"mask": 0.8, "random": 0.1, "keep": 0.1, "per": ReplaceBy.SPAN}


def cloze(select, show=SHOW, hide=MaskTokens):
    return Task(
        name="cloze", examples=Packed(DocumentBoundary.NEVER), corruption=hide(select, show), objectives=(MLM(),)
    )


def named(findings, name):
    return next(finding for finding in findings if finding.name.startswith(name))


@pytest.mark.parametrize("name", [found.name for found in presets()])
def test_every_bare_rule_holds(name, corpus):
    findings = audit(preset(name), corpus, KEY, rows=600, lengths=(256,))
    assert findings.holds, findings.broken


@pytest.mark.parametrize("recipe", members(), ids=lambda recipe: recipe.name)
def test_every_member_holds_at_all_its_lengths(recipe, corpus):
    findings = audit(recipe, corpus, KEY, rows=400)
    assert findings.holds, findings.broken
    assert {section.length for section in findings.sections} == {stage.max_length for stage in recipe.stages}


def test_a_mixture_of_levels_holds(corpus):
    select = OneOfSelectors((RandomTokens(), WholeUnits(UnitKind.WORD), WholeUnits(UnitKind.ENTITY)), (0.5, 0.25, 0.25))
    findings = audit(cloze(select), corpus, KEY, rows=600, lengths=(128,))
    assert findings.holds, findings.broken
    assert named(findings, "words left half-masked").verdict is Verdict.REPORTED


@pytest.mark.parametrize("per", [ReplaceBy.WORD, ReplaceBy.SPAN])
def test_words_and_spans_that_draw_once_hold(per, corpus):
    for show in (Replace(mask=0.5, random=0.3, keep=0.2, per=per), Replace(similar=0.6, mask=0.2, keep=0.2, per=per)):
        findings = audit(cloze(WholeUnits(run_lengths=RUNS), show), corpus, KEY, rows=600, lengths=(512,))
        assert findings.holds, findings.broken


@dataclass(frozen=True, slots=True)
class Torn(WholeUnits):
    def __call__(self, example, key):
        spans = WholeUnits.__call__(self, example, key)
        return Spans(spans.start, np.maximum(spans.end - 1, spans.start + 1))


@dataclass(frozen=True, slots=True)
class Greedy(WholeUnits):
    def __call__(self, example, key):
        return WholeUnits(self.layer, self.run_lengths, self.rate * 1.5)(example, key)


@dataclass(frozen=True, slots=True)
class Lawless(WholeUnits):
    def __call__(self, example, key):
        return WholeUnits(self.layer, (0.5, 0.3, 0.1, 0.1), self.rate)(example, key)


@dataclass(frozen=True, slots=True)
class AlwaysMasks(Replace):
    def __call__(self, chosen, vocab, key):
        return np.full_like(chosen.ids, vocab.mask)


@dataclass(frozen=True, slots=True)
class ByToken(Replace):
    def __call__(self, chosen, vocab, key):
        return Replace(self.mask, self.random, self.keep)(chosen, vocab, key)


@dataclass(frozen=True, slots=True)
class ShowsSpecials(Replace):
    def __call__(self, chosen, vocab, key):
        shown = Replace.__call__(self, chosen, vocab, key)
        return np.where((shown != vocab.mask) & (shown != chosen.ids), vocab.sep, shown).astype(np.int32)


@dataclass(frozen=True, slots=True)
class EatsSpecials(MaskTokens):
    def __call__(self, example, vocab, key):
        instance = MaskTokens.__call__(self, example, vocab, key)
        ids = np.where(example.protected, vocab.mask, instance.inputs.ids).astype(np.int32)
        return replace(instance, inputs=replace(instance.inputs, ids=ids))


@dataclass(frozen=True, slots=True)
class HalfTheRows(MaskTokens):
    def __call__(self, example, vocab, key):
        instance = MaskTokens.__call__(self, example, vocab, key)
        target, ids = instance.targets[0], instance.inputs.ids.copy()
        drop = (np.searchsorted(example.rows, target.positions, side="right") - 1) % 2 == 0
        ids[target.positions[drop]] = target.answers[drop]
        kept = replace(
            target,
            positions=target.positions[~drop],
            answers=target.answers[~drop],
            spans=Spans(target.positions[~drop], target.positions[~drop] + 1),
        )
        return replace(instance, inputs=replace(instance.inputs, ids=ids), targets=(kept,))


@dataclass(frozen=True, slots=True)
class Forgets(MaskTokens):
    def restore(self, instance, vocab):
        return instance.inputs.ids, instance.inputs.rows


@pytest.mark.parametrize(
    ("task", "broken"),
    [
        (cloze(Torn()), "words left half-masked"),
        (cloze(Greedy()), "tokens chosen (15 % wanted)"),
        (cloze(Greedy()), "rows over budget"),
        (cloze(Greedy(run_lengths=RUNS)), "tokens chosen (15 % wanted)"),
        (cloze(Lawless(run_lengths=RUNS)), "run length in words, largest gap"),
        (cloze(Lawless(run_lengths=RUNS)), "run length in words, mean"),
        (cloze(RandomTokens(), AlwaysMasks(mask=0.8, random=0.1, keep=0.1)), "shown: kept"),
        (cloze(WholeUnits(run_lengths=RUNS), ByToken(**ONCE)), "spans shown as a mask in part"),
        (cloze(RandomTokens(), ShowsSpecials(mask=0.8, random=0.1, keep=0.1)), "random tokens that are special"),
        (cloze(RandomTokens(), hide=EatsSpecials), "special tokens touched"),
        (cloze(RandomTokens(), hide=HalfTheRows), "rows with an empty cloze"),
        (cloze(RandomTokens(), hide=Forgets), "rows not restored exactly"),
    ],
)
def test_a_fault_of_a_cloze_is_found(task, broken, corpus):
    findings = audit(task, corpus, KEY, rows=400, lengths=(128,))
    assert broken in {finding.name for finding in findings.broken}


@dataclass(frozen=True, slots=True)
class LongSpans(SpanCorruption):
    def __call__(self, example, vocab, key):
        return SpanCorruption(self.rate, 5.0)(example, vocab, key)


@dataclass(frozen=True, slots=True)
class LongMasks(TextInfilling):
    def __call__(self, example, vocab, key):
        return TextInfilling(self.rate, 4.0)(example, vocab, key)


@dataclass(frozen=True, slots=True)
class DeletesMore(TokenDeletion):
    def __call__(self, example, vocab, key):
        return TokenDeletion(0.3)(example, vocab, key)


@dataclass(frozen=True, slots=True)
class Tears(PermuteSentences):
    def __call__(self, example, vocab, key):
        return DocumentRotation()(example, vocab, key)


@dataclass(frozen=True, slots=True)
class Loses(DocumentRotation):
    def __call__(self, example, vocab, key):
        instance = DocumentRotation()(example, vocab, key)
        ids = instance.inputs.ids.copy()
        ids[2::3] = ids[1::3][: len(ids[2::3])]
        return replace(instance, inputs=replace(instance.inputs, ids=ids))


@dataclass(frozen=True, slots=True)
class InFront(MassFragment):
    def __call__(self, example, vocab, key):
        return MassFragment(place_probabilities=(1.0, 0.0, 0.0))(example, vocab, key)


@dataclass(frozen=True, slots=True)
class InReadingOrder(PermutationOrder):
    def __call__(self, example, vocab, key):
        instance = PermutationOrder.__call__(self, example, vocab, key)
        target = instance.targets[0]
        rank = target.rank.copy()
        row = np.searchsorted(example.rows, target.positions, side="right") - 1
        first = np.searchsorted(row, np.arange(len(example)))
        rank[target.positions] = np.arange(len(row)) - first[row]
        return replace(instance, targets=(PermutedTarget(rank, target.positions, target.answers),))


@dataclass(frozen=True, slots=True)
class NoOrder(PermutationOrder):
    def __call__(self, example, vocab, key):
        instance = PermutationOrder.__call__(self, example, vocab, key)
        target = instance.targets[0]
        return replace(
            instance, targets=(PermutedTarget(np.minimum(target.rank, 3), target.positions, target.answers),)
        )


@pytest.mark.parametrize(
    ("name", "corrupt", "broken"),
    [
        ("t5", LongSpans(), "span length, mean"),
        ("t5", LongSpans(), "span length in tokens, largest gap"),
        ("infill", LongMasks(), "words per mask, mean"),
        ("infill", LongMasks(), "words per mask, largest gap"),
        ("delete", DeletesMore(), "text deleted"),
        ("permute", Tears(), "sentences torn apart"),
        ("rotate", Loses(), "tokens lost or doubled"),
        ("rotate", Loses(), "special tokens touched"),
        ("mass", InFront(), "fragments at the beginning"),
        ("xlnet", InReadingOrder(), "adjacent tokens predicted from left to right"),
        ("xlnet", NoOrder(), "rows whose ranks are no order"),
    ],
)
def test_a_fault_of_a_rewriting_rule_is_found(name, corrupt, broken, corpus):
    findings = audit(replace(preset(name), corruption=corrupt), corpus, KEY, rows=400, lengths=(256,))
    assert broken in {finding.name for finding in findings.broken}


@dataclass(frozen=True, slots=True)
class Lies(SegmentPairs):
    def plan(self, corpus, length, key):
        plan = SegmentPairs.plan(self, corpus, length, key)
        return replace(plan, facts={name: 1 - value for name, value in plan.facts.items()})


def test_pairs_that_contradict_their_fact_are_found(corpus):
    task = replace(cloze(RandomTokens()), examples=Lies(Negative.RANDOM))
    findings = audit(task, corpus, KEY, rows=300, lengths=(128,))
    assert named(findings, "next: pairs their documents contradict").measured == 300


@dataclass(frozen=True, slots=True)
class Stuck(DynamicMasking):
    def draw_number(self, visit):
        return 0 * visit


@pytest.mark.parametrize(
    ("renew", "visits", "draws"), [(StaticMasking(10), 40, 10), (StaticMasking(3), 12, 3), (DynamicMasking(), 40, 40)]
)
def test_renewal_is_counted(renew, visits, draws, corpus):
    recipe = replace(members()[0], masking=renew)
    finding = named(audit(recipe, corpus, KEY, rows=10), "different draws")
    assert (finding.name, finding.measured) == (f"different draws in {visits} visits", draws)


def test_masks_that_never_change_are_found(corpus):
    findings = audit(replace(members()[0], masking=Stuck()), corpus, KEY, rows=10, lengths=(128,))
    assert [finding.name for finding in findings.broken] == ["different draws in 40 visits"]


def test_similar_words_without_a_table_break_the_rule_and_say_what_to_do(corpus):
    bare = replace(corpus, vocab=replace(corpus.vocab, similar_words=NO_SIMILAR_WORDS))
    findings = audit(preset("similar"), bare, KEY, rows=200, lengths=(128,))
    assert [finding.name for finding in findings.broken] == ["chosen words that have a similar word"]
    assert "unmask similar-words" in findings.broken[0].advice


def test_a_table_that_knows_few_words_breaks_the_rule_and_the_wanted_share_is_still_named(corpus):
    few = SimilarWords.of([(token,) for token in range(10, 60)], [[number ^ 1] for number in range(50)])
    findings = audit(
        preset("similar"), replace(corpus, vocab=replace(corpus.vocab, similar_words=few)), KEY, lengths=(128,)
    )
    assert [finding.name for finding in findings.broken] == ["chosen words that have a similar word"]
    assert "more text, or give it --synonyms" in findings.broken[0].advice
    similar = named(findings, "shown: similar words (80 % wanted)")
    assert similar.rule.value < 0.5
    assert named(findings, "shown: random words (10 % wanted)").rule.value > 0.4


def test_a_few_rows_judge_no_share(corpus):
    task = replace(cloze(RandomTokens()), examples=SegmentPairs(Negative.RANDOM))
    findings = audit(task, corpus, KEY, rows=3, lengths=(128,))
    assert findings.holds
    assert {"next: random pairs", "shown: mask", "shown: kept"} <= {finding.name for finding in findings.undecided}
    assert named(findings, "rows not restored exactly").verdict is Verdict.HOLDS


def test_entities_are_spelled_as_such(corpus):
    findings = audit(cloze(WholeUnits(UnitKind.ENTITY)), corpus, KEY, rows=50, lengths=(128,))
    assert named(findings, "entities left half-masked").measured == 0


def test_the_whole_corpus_is_enough_and_more_rows_than_there_are_do_no_harm(corpus):
    section = audit(preset("gpt"), corpus, KEY, rows=1 << 60, lengths=(256,)).sections[0]
    text = corpus.manifest.counts.tokens
    assert text < section.tokens < 1.1 * text


def test_the_audited_rows_do_not_depend_on_how_many_are_audited(corpus):
    few = audit(preset("word"), corpus, KEY, rows=256, lengths=(128,))
    again = audit(preset("word"), corpus, KEY, rows=256, lengths=(128,))
    other = audit(preset("word"), corpus, Key.of(6), rows=256, lengths=(128,))
    assert few == again != other


def test_a_missing_layer_is_refused(corpus):
    plain = replace(corpus, manifest=replace(corpus.manifest, layers=(UnitKind.SENTENCE,)))
    with pytest.raises(RecipeError, match="reads word units"):
        audit(preset("word"), plain, KEY)
    with pytest.raises(RecipeError, match="unmask prepare CORPUS --out NEW_FOLDER"):
        audit(preset("word"), plain, KEY)
    with pytest.raises(RecipeError, match="unmask prepare CORPUS --units entity --out NEW_FOLDER"):
        audit(cloze(WholeUnits(UnitKind.ENTITY)), plain, KEY)
    with pytest.raises(RecipeError, match="was prepared with sentence only"):
        audit(next(found for found in members() if found.name == "wwm"), plain, KEY)


@dataclass(frozen=True, slots=True)
class NoRows(Packed):
    def plan(self, corpus, length, key):
        empty = np.zeros(0, dtype=np.int64)
        plan = Packed.plan(self, corpus, length, key)
        return replace(plan, start=empty, length=empty, segment=empty, document=empty, rows=np.zeros(1, np.int64))


def test_a_corpus_without_rows_is_refused(corpus):
    with pytest.raises(CorpusError, match="no row at all"):
        audit(replace(cloze(RandomTokens()), examples=NoRows()), corpus, KEY)


@dataclass(frozen=True, slots=True)
class Mine(NoCorruption):
    """A rule that nobody knows."""


def test_an_unknown_rule_is_asked_what_every_rule_is_asked(corpus):
    names = {finding.name for finding in audit(replace(preset("gpt"), corruption=Mine()), corpus, KEY, rows=50)}
    assert names == {
        "padding, if rows are padded",
        "documents in a row",
        "rows above 512 tokens",
        "rows not restored exactly",
    }

"""A walk: one text through a task or a member, with every stage kept.

The text becomes a corpus of one document, and the planner, row builder, corruption and attention pattern of training
run on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unmask.config.attention_pattern import RowCoordinates, StreamInit
from unmask.core.errors import InputError, RecipeError
from unmask.core.ragged import offsets
from unmask.core.records import (
    Bits,
    Bools,
    DecoderTarget,
    Document,
    InputsAndTargets,
    PermutedTarget,
    RowBatch,
    TokenDoc,
    UnitFlag,
    UnitKind,
)
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.input_formats.dialogues import Dialogues
from unmask.data.input_formats.row_plan import DynamicMasking, EpochSampler, MaskingMode, build_rows
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.vocab import Vocab
from unmask.tasks.presets import Preset
from unmask.tasks.recipe import Recipe, Task
from unmask.walks.context import WalkContext
from unmask.walks.describe import (
    SEGMENT_LETTERS,
    Names,
    describe_attention,
    describe_budget,
    describe_masking,
    describe_replacement,
    describe_selection,
    pluralize,
    token_texts,
    with_raised_rate,
)
from unmask.walks.targets import PredictedTokens, ReadableTarget, readable_targets
from unmask.walks.toy_vocab import CASED, ListedVocabulary, other_toy_dialogue, other_toy_document
from unmask.walks.trace import TraceStep, trace


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkTarget:
    """A task and the words that introduce it."""

    name: str
    term: str
    summary: str
    paper: str
    task: Task
    renew: MaskingMode = DynamicMasking()
    length: int = 512
    spelling: ListedVocabulary = CASED
    """The treatment of case and accents in a toy vocabulary."""
    part_note: str = ""
    """The stage and task of a member, if it has several."""

    @staticmethod
    def of_rule(rule: Preset, task: Task) -> WalkTarget:
        """A single task; `task` may have other numbers than the preset."""
        return WalkTarget(
            name=f"rule {rule.name}", term=rule.chinese_name, summary=rule.description, paper=rule.paper, task=task
        )

    @staticmethod
    def of_member(recipe: Recipe, task: str = "") -> WalkTarget:
        """The first task of the first stage, or a task by name in the first stage that has it."""
        number, place = _find_task(recipe, task)
        stage = recipe.stages[number]
        return WalkTarget(
            name=recipe.name,
            term="",
            summary=recipe.summary,
            paper=f"{recipe.paper}, {recipe.year}",
            task=stage.tasks[place],
            renew=recipe.masking,
            length=stage.max_length,
            spelling=ListedVocabulary.like(recipe.tokenizer),
            part_note=_part_note(recipe, number, place),
        )

    @property
    def is_dialogue(self) -> bool:
        """Whether its rows are dialogues."""
        return isinstance(self.task.examples, Dialogues)


@dataclass(frozen=True, slots=True)
class WalkToken:
    """One token: its text, id, word number and segment, and whether it is protected."""

    text: str
    id: int
    word: int
    segment: int = 0
    protected: bool = False


@dataclass(frozen=True, slots=True)
class CorruptedRow:
    """One corruption of the row."""

    visit: int
    description: str
    steps: tuple[TraceStep, ...]
    inputs: tuple[tuple[str, ...], ...]
    """The tokens after each step; the last are the input of the network."""
    targets: tuple[ReadableTarget, ...]
    is_restored: bool
    """Whether the original row is restored from the input and the targets alone."""


@dataclass(frozen=True, slots=True)
class AttentionGrid:
    """The attention of one stream: `grid[i, j]` is whether position i may attend to position j."""

    name: str
    description: str
    grid: Bools
    query_groups: tuple[tuple[int, ...], ...]
    """The positions to show: predicted ones first, then groups with equal attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """All stages of one text under one rule."""

    target: WalkTarget
    text: str
    sentences: tuple[str, ...]
    units: tuple[tuple[UnitKind, tuple[str, ...]], ...]
    """The words, and the phrases and entities if there are any."""
    tokens: tuple[WalkToken, ...]
    context: WalkContext
    row: tuple[WalkToken, ...]
    num_rows: int
    """The number of rows of the text; the first is walked."""
    other_text_note: str
    """A note if the row has sample text that is not the user's; empty otherwise."""
    selection: str
    replacement: str
    budget: str
    raised_rate_note: str
    """A note if the rate was raised; empty otherwise."""
    notes: tuple[str, ...]
    corrupted_rows: tuple[CorruptedRow, ...]
    """The draw of the requested visit, then others of the same row."""
    attention: str
    streams: tuple[AttentionGrid, ...]
    """The same as a grid for each stream."""

    @property
    def further_rows(self) -> tuple[CorruptedRow, ...]:
        """The further draws; none if every visit is equal."""
        return (
            self.corrupted_rows[1:]
            if any(draw.steps != self.corrupted_rows[0].steps for draw in self.corrupted_rows)
            else ()
        )


def walk(
    target: WalkTarget,
    document: Document,
    context: WalkContext,
    other_document: Document,
    seed: int = 0,
    visits: Sequence[int] = (0,),
    exact: bool = False,
) -> Walk:
    """Walk a document through a target. `other` is a second document for pairs that need one.

    The rate is raised on a row that is too short to show the rule, unless `exact`.
    """
    docs = [Encoder(context.tokenizer)(one) for one in (document, other_document)]
    example, rows, far = _first_row(target, docs, context.vocab, seed)
    names = token_texts(context.tokenizer)
    task, widened = (target.task, "") if exact else with_raised_rate(target.task, example)
    timetable = EpochSampler(rows, target.renew, Key.of(seed, task.name))
    draws = [
        _corrupt_row(replace(target, task=task), example, context.vocab, names, timetable, visit) for visit in visits
    ]
    return Walk(
        target=target,
        text=document.text,
        sentences=_unit_texts(document, UnitKind.SENTENCE),
        units=tuple(
            (layer, _unit_texts(document, layer)) for layer in (UnitKind.WORD, UnitKind.PHRASE, UnitKind.ENTITY)
        ),
        tokens=_tokens(docs[0], names),
        context=context,
        row=_row(example, names),
        num_rows=rows,
        other_text_note=_other_text_note(example, far)
        if other_document.text in (other_toy_document(document.text), other_toy_dialogue(document.text))
        else "",
        selection=describe_selection(task.corruption),
        replacement=describe_replacement(task.corruption),
        budget=describe_budget(task.corruption, example),
        raised_rate_note=widened,
        notes=tuple(_notes(task, document, context)),
        corrupted_rows=tuple(draw for draw, _ in draws),
        attention=describe_attention(task.attention, DecoderTarget in task.corruption.target_types),
        streams=_attention_grids(task, draws[0][1]),
    )


def prediction_turns(row: CorruptedRow) -> dict[int, str]:
    """The rank of each position in a drawn order."""
    ordered = (one for one in row.targets if isinstance(one, PredictedTokens) and one.is_sequential)
    return {answer.position: str(turn) for one in ordered for turn, answer in enumerate(one.tokens, start=1)}


def raised_rates_note(walks: Sequence[Walk]) -> str:
    """A note about the walks with a raised rate; empty if there are none."""
    names = [walk.target.name.removeprefix("rule ") for walk in walks if walk.raised_rate_note]
    about = "shown at a higher rate than their own, because the text is short; --exact keeps the rates"
    return f"{', '.join(names)}: {about}" if names else ""


def _find_task(recipe: Recipe, task: str) -> tuple[int, int]:
    """The first stage with a task of this name, and the index of the task."""
    if not task:
        return 0, 0
    for number, stage in enumerate(recipe.stages):
        for place, one in enumerate(stage.tasks):
            if one.name == task:
                return number, place
    names = ", ".join(dict.fromkeys(f"'{one.name}'" for one in recipe.tasks))
    raise RecipeError(f"{recipe.name} has no task '{task}'. It has: {names}.")


def _part_note(recipe: Recipe, number: int, place: int) -> str:
    """The stage and task that are walked; empty if a member has one of each."""
    stage = recipe.stages[number]
    parts = []
    if len(stage.tasks) > 1:
        parts.append(f"task '{stage.tasks[place].name}', the {_ordinal(place)} of {len(stage.tasks)}")
    if len(recipe.stages) > 1:
        parts.append(
            f"stage {number + 1} of {len(recipe.stages)}, rows of up to {pluralize(stage.max_length, 'token')}"
        )
    others = dict.fromkeys(task.name for task in recipe.tasks if task.name != stage.tasks[place].name)
    if others:
        parts.append(f"--task takes another: {', '.join(others)}")
    return f"walked here: {'; '.join(parts)}" if parts else ""


def _ordinal(place: int) -> str:
    return ("first", "second", "third")[place] if place < 3 else f"{place + 1}th"


def _other_text_note(example: RowBatch, far: Bits) -> str:
    """A note about the position of a sample sentence in the row; empty if there is none."""
    if not len(far):
        return ""
    segments = " and ".join(SEGMENT_LETTERS[segment] for segment in sorted(set(far.tolist())))
    place = segments if example.segment.any() else "after the text"
    return f"{place}: a sample sentence; --other gives yours"


def _first_row(subject: WalkTarget, docs: Sequence[TokenDoc], vocab: Vocab, seed: int) -> tuple[RowBatch, int, Bits]:
    """The row in which the first document begins, its number of rows, and the segments of other documents."""
    if not len(docs[0].ids):
        raise InputError("There is nothing to walk: the text has no visible character. Give some text with --text.")
    task, corpus = subject.task, _corpus(docs, vocab)
    plan = task.examples.plan(corpus, subject.length, Key.of(seed, task.name))
    # A fake turn may be the first of its row; which rows there are does not depend on it.
    true = replace(task.examples, fake_fraction=0.0) if isinstance(task.examples, Dialogues) else task.examples
    own = true.plan(corpus, subject.length, Key.of(seed, task.name)) if true != task.examples else plan
    filled = int((own.start[own.rows[:-1]] < len(docs[0].ids)).sum())
    if not filled:
        raise InputError(f"The text is too short to make a row of {subject.name}. Give a longer one with --text.")
    pieces = slice(0, int(plan.rows[1]))
    far = plan.segment[pieces][plan.start[pieces] + plan.length[pieces] > len(docs[0].ids)]
    return build_rows(corpus, plan, np.zeros(1, dtype=np.int64), task.examples.template, vocab), filled, far


def _corpus(docs: Sequence[TokenDoc], vocab: Vocab) -> Corpus:
    """The documents as a corpus in memory."""
    ids = np.concatenate([doc.ids for doc in docs])
    bits = np.concatenate([doc.units.bits for doc in docs])
    borders = offsets(np.array([len(doc.ids) for doc in docs]))
    counts = Counts(documents=len(docs), tokens=len(ids))
    manifest = Manifest("", "", tuple(UnitKind), {}, counts, {}, {})
    return Corpus(Path(), manifest, (Shard(ids, bits, borders, 0),), vocab)


def _corrupt_row(
    subject: WalkTarget, example: RowBatch, vocab: Vocab, names: Names, timetable: EpochSampler, visit: int
) -> tuple[CorruptedRow, InputsAndTargets]:
    corrupt = subject.task.corruption
    key = timetable.key_of(np.zeros(1, dtype=np.int64), np.array([visit]))
    instance = corrupt(example, vocab, key)
    steps = trace(corrupt, example, vocab, key)
    inputs = tuple(tuple(names([place.id for place in step.positions])) for step in steps)
    ids, rows = corrupt.restore(instance, vocab)
    restored = np.array_equal(ids, example.ids) and np.array_equal(rows, example.rows)
    questions = readable_targets(subject.task, instance, steps, vocab, names)
    about = "nothing is drawn" if isinstance(corrupt, NoCorruption) else describe_masking(subject.renew, visit)
    return CorruptedRow(visit, about, steps, inputs, questions, restored), instance


def _tokens(doc: TokenDoc, names: Names) -> tuple[WalkToken, ...]:
    word = np.cumsum((doc.units.bits & UnitFlag.WORD) != 0) - 1
    return tuple(map(WalkToken, names(doc.ids), doc.ids.tolist(), word.tolist()))


def _row(example: RowBatch, names: Names) -> tuple[WalkToken, ...]:
    word = np.cumsum((example.units.bits & UnitFlag.WORD) != 0) - 1
    columns = (example.ids, word, example.segment, example.protected)
    return tuple(map(WalkToken, names(example.ids), *(column.tolist() for column in columns)))


def _unit_texts(document: Document, layer: UnitKind) -> tuple[str, ...]:
    if layer not in document.char_spans:
        return ()
    spans = document.char_spans[layer].spans
    return tuple(document.text[a:b] for a, b in zip(spans.start.tolist(), spans.end.tolist(), strict=True))


def _attention_grids(task: Task, instance: InputsAndTargets) -> tuple[AttentionGrid, ...]:
    """The attention of each stream on this row."""
    inputs = instance.inputs
    rank = next(
        (target.rank for target in instance.targets if isinstance(target, PermutedTarget)), np.zeros(0, np.int32)
    )
    turns = np.argsort(rank, kind="stable")[int((rank < 0).sum()) :].tolist()
    layout = RowCoordinates.of(len(inputs.ids), document=inputs.document.tolist(), rank=rank.tolist())
    found = []
    for stream in task.attention.streams:
        grid = stream.rule.matrix(layout)
        if stream.starts_from is StreamInit.BLANK:
            about = f"reads {stream.reads_from}; a place starts from its number, not its token"
            found.append(AttentionGrid(stream.name, about, grid, tuple((place,) for place in turns)))
        else:
            rest = _group_equal_queries(grid, [place for place in range(len(grid)) if place not in turns])
            found.append(
                AttentionGrid(stream.name, f"reads {stream.reads_from}", grid, (*((turn,) for turn in turns), *rest))
            )
    return tuple(found)


def _group_equal_queries(grid: Bools, places: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Positions with equal attention, grouped."""
    groups: dict[bytes, list[int]] = {}
    for place in places:
        groups.setdefault(grid[place].tobytes(), []).append(place)
    return tuple(tuple(group) for group in groups.values())


def _notes(task: Task, document: Document, ground: WalkContext) -> Sequence[str]:
    """Notes about this walk in addition to the rule."""
    notes = [
        f"no {layer} is marked here, so words are chosen; mark one with --{layer} TEXT"
        for layer in (UnitKind.PHRASE, UnitKind.ENTITY)
        if layer in task.required_units and not _unit_texts(document, layer)
    ]
    if isinstance(task.corruption, MaskTokens) and task.corruption.replace.similar:
        notes.append(f"similar words: {ground.similar_words_source}")
    if UnitKind.SENTENCE in task.required_units and len(_unit_texts(document, UnitKind.SENTENCE)) == 1:
        notes.append("the text is one sentence, so there is no other order to put its sentences into")
    return notes

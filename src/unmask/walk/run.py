"""One sentence on its way through a rule, every stage kept.

What arrives: a text, and a subject: a bare rule or a member of the family.
What leaves: a `Walk`, which holds each stage in words and tokens, ready to be printed or drawn.
What never happens here: a second implementation. The text becomes a corpus of one document, and the same planner,
builder, corruption and view that train a network work on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.nothing import Nothing
from unmask.errors import InputError, RecipeError
from unmask.examples.dialogues import Dialogues
from unmask.examples.plan import build
from unmask.examples.visits import EveryVisit, Renew, Visits
from unmask.keys import Key
from unmask.ragged import offsets
from unmask.records import Bits, Bools, Document, Example, Flag, Instance, Layer, Ordering, Rewrite, TokenDoc
from unmask.rules import BareRule
from unmask.shards.corpus import Corpus, Shard
from unmask.shards.manifest import Counts, Manifest
from unmask.tasks import Recipe, Task
from unmask.tokenize.encode import Encoder
from unmask.tokenize.vocab import Vocab
from unmask.views import Layout, Start
from unmask.walk.asked import Answers, Asked, asked
from unmask.walk.ground import Ground
from unmask.walk.names import Names, readable
from unmask.walk.room import with_room
from unmask.walk.toy import CASED, Listed, other_document, other_talk
from unmask.walk.trace import Traced, trace
from unmask.walk.wording import SEGMENTS, budget, count, renewal, shows, sight, where


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is walked: a task, and the words that introduce it."""

    name: str
    term: str
    says: str
    paper: str
    task: Task
    renew: Renew = EveryVisit()
    length: int = 512
    spelling: Listed = CASED
    """How a toy vocabulary treats case and accents."""
    walked: str = ""
    """Which part of a member is walked, if there is more of it."""

    @staticmethod
    def of_rule(rule: BareRule, task: Task) -> Subject:
        """A bare rule; `task` is its own, perhaps with other numbers."""
        return Subject(name=f"rule {rule.name}", term=rule.term, says=rule.says, paper=rule.paper, task=task)

    @staticmethod
    def of_member(recipe: Recipe, task: str = "") -> Subject:
        """The first task of a member's first stage, or another by its name, where it is met first."""
        number, place = _place(recipe, task)
        stage = recipe.stages[number]
        return Subject(
            name=recipe.name,
            term="",
            says=recipe.changed,
            paper=f"{recipe.paper}, {recipe.year}",
            task=stage.tasks[place],
            renew=recipe.renew,
            length=stage.length,
            spelling=Listed.like(recipe.tokenizer),
            walked=_part_of(recipe, number, place),
        )

    @property
    def talks(self) -> bool:
        """Whether its rows are conversations."""
        return isinstance(self.task.examples, Dialogues)


@dataclass(frozen=True, slots=True)
class Token:
    """One token: how it is written, its id, the number of its word, its segment, and whether no rule may touch it."""

    text: str
    id: int
    word: int
    segment: int = 0
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Draw:
    """One corruption of the row."""

    visit: int
    about: str
    steps: tuple[Traced, ...]
    inputs: tuple[tuple[str, ...], ...]
    """The tokens after each step; the last is what the network sees."""
    asked: tuple[Asked, ...]
    restored: bool
    """Whether the original row came back from the input and the targets alone."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Who sees whom in one stream: `grid[i, j]` says whether place i may read place j."""

    name: str
    about: str
    grid: Bools
    lines: tuple[tuple[int, ...], ...]
    """The places worth a line: those asked in turn, then the rest, with those that see the same together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Every stage of one text under one rule."""

    subject: Subject
    text: str
    sentences: tuple[str, ...]
    units: tuple[tuple[Layer, tuple[str, ...]], ...]
    """The words, and the phrases and entities if there are any."""
    tokens: tuple[Token, ...]
    ground: Ground
    row: tuple[Token, ...]
    rows: int
    """How many rows the text fills; the first is walked."""
    second: str
    """That text in the row is a sample and not the user's; empty if it is not."""
    where: str
    shows: str
    budget: str
    widened: str
    """That the rule was given more room than its own rate leaves, and why; empty if it was not."""
    notes: tuple[str, ...]
    draws: tuple[Draw, ...]
    """The draw of the visit that was asked for, then others of the same row."""
    sight: str
    streams: tuple[Sight, ...]
    """The same as a grid for each stream."""

    @property
    def others(self) -> tuple[Draw, ...]:
        """The further draws; none if every visit is the same."""
        return self.draws[1:] if any(draw.steps != self.draws[0].steps for draw in self.draws) else ()


def walk(
    subject: Subject,
    document: Document,
    ground: Ground,
    other: Document,
    seed: int = 0,
    visits: Sequence[int] = (0,),
    exact: bool = False,
) -> Walk:
    """Walk a document through a subject. `other` is text from elsewhere, for pairs that need it.

    A rule that cannot show itself on so short a row is given room, and the walk says so, unless it has to be `exact`.
    """
    docs = [Encoder(ground.tokenizer)(one) for one in (document, other)]
    example, rows, far = _first_row(subject, docs, ground.vocab, seed)
    names = readable(ground.tokenizer)
    task, widened = (subject.task, "") if exact else with_room(subject.task, example)
    timetable = Visits(rows, subject.renew, Key.of(seed, task.name))
    draws = [_draw(replace(subject, task=task), example, ground.vocab, names, timetable, visit) for visit in visits]
    return Walk(
        subject=subject,
        text=document.text,
        sentences=_pieces(document, Layer.SENTENCE),
        units=tuple((layer, _pieces(document, layer)) for layer in (Layer.WORD, Layer.PHRASE, Layer.ENTITY)),
        tokens=_tokens(docs[0], names),
        ground=ground,
        row=_row(example, names),
        rows=rows,
        second=_second(example, far)
        if other.text in (other_document(document.text), other_talk(document.text))
        else "",
        where=where(task.corrupt),
        shows=shows(task.corrupt),
        budget=budget(task.corrupt, example),
        widened=widened,
        notes=tuple(_notes(task, document, ground)),
        draws=tuple(draw for draw, _ in draws),
        sight=sight(task.view, Rewrite in task.corrupt.makes),
        streams=_streams(task, draws[0][1]),
    )


def turns_of(draw: Draw) -> dict[int, str]:
    """The turn in which each place is asked, where places are asked in a drawn order."""
    ordered = (one for one in draw.asked if isinstance(one, Answers) and one.in_turn)
    return {answer.place: str(turn) for one in ordered for turn, answer in enumerate(one.answers, start=1)}


def raised_rates(walks: Sequence[Walk]) -> str:
    """Which of several walks show their rule at a higher rate than its own; nothing if none does."""
    names = [walk.subject.name.removeprefix("rule ") for walk in walks if walk.widened]
    about = "shown at a higher rate than their own, because the text is short; --exact keeps the rates"
    return f"{', '.join(names)}: {about}" if names else ""


def _place(recipe: Recipe, task: str) -> tuple[int, int]:
    """The first stage with a task of this name, and its place there."""
    if not task:
        return 0, 0
    for number, stage in enumerate(recipe.stages):
        for place, one in enumerate(stage.tasks):
            if one.name == task:
                return number, place
    names = ", ".join(dict.fromkeys(f"'{one.name}'" for one in recipe.tasks))
    raise RecipeError(f"{recipe.name} has no task '{task}'. It has: {names}.")


def _part_of(recipe: Recipe, number: int, place: int) -> str:
    """Which stage and task of a member is walked; nothing if it has one of each."""
    stage = recipe.stages[number]
    parts = []
    if len(stage.tasks) > 1:
        parts.append(f"task '{stage.tasks[place].name}', the {_ordinal(place)} of {len(stage.tasks)}")
    if len(recipe.stages) > 1:
        parts.append(f"stage {number + 1} of {len(recipe.stages)}, rows of up to {count(stage.length, 'token')}")
    others = dict.fromkeys(task.name for task in recipe.tasks if task.name != stage.tasks[place].name)
    if others:
        parts.append(f"--task takes another: {', '.join(others)}")
    return f"walked here: {'; '.join(parts)}" if parts else ""


def _ordinal(place: int) -> str:
    return ("first", "second", "third")[place] if place < 3 else f"{place + 1}th"


def _second(example: Example, far: Bits) -> str:
    """That a sample sentence stands in the row, and where; nothing if none does."""
    if not len(far):
        return ""
    segments = " and ".join(SEGMENTS[segment] for segment in sorted(set(far.tolist())))
    place = segments if example.segment.any() else "behind the text"
    return f"{place}: a sample sentence; --other gives yours"


def _first_row(subject: Subject, docs: Sequence[TokenDoc], vocab: Vocab, seed: int) -> tuple[Example, int, Bits]:
    """The row with which the first document begins, how many it fills, and the segments of what is from elsewhere."""
    if not len(docs[0].ids):
        raise InputError("There is nothing to walk: the text has no visible character. Give some text with --text.")
    task, corpus = subject.task, _corpus(docs, vocab)
    plan = task.examples.plan(corpus, subject.length, Key.of(seed, task.name))
    # A fake turn may be the first of its row; which rows there are does not depend on it.
    true = replace(task.examples, fake=0.0) if isinstance(task.examples, Dialogues) else task.examples
    own = true.plan(corpus, subject.length, Key.of(seed, task.name)) if true != task.examples else plan
    filled = int((own.start[own.rows[:-1]] < len(docs[0].ids)).sum())
    if not filled:
        raise InputError(f"The text is too short to make a row of {subject.name}. Give a longer one with --text.")
    pieces = slice(0, int(plan.rows[1]))
    far = plan.segment[pieces][plan.start[pieces] + plan.length[pieces] > len(docs[0].ids)]
    return build(corpus, plan, np.zeros(1, dtype=np.int64), task.examples.frame, vocab), filled, far


def _corpus(docs: Sequence[TokenDoc], vocab: Vocab) -> Corpus:
    """The documents as a corpus in memory, so that planners and builders work on them as on any other."""
    ids = np.concatenate([doc.ids for doc in docs])
    bits = np.concatenate([doc.units.bits for doc in docs])
    borders = offsets(np.array([len(doc.ids) for doc in docs]))
    counts = Counts(documents=len(docs), tokens=len(ids))
    manifest = Manifest("", "", tuple(Layer), {}, counts, {}, {})
    return Corpus(Path(), manifest, (Shard(ids, bits, borders, 0),), vocab)


def _draw(
    subject: Subject, example: Example, vocab: Vocab, names: Names, timetable: Visits, visit: int
) -> tuple[Draw, Instance]:
    corrupt = subject.task.corrupt
    key = timetable.at(np.zeros(1, dtype=np.int64), np.array([visit]))
    instance = corrupt(example, vocab, key)
    steps = trace(corrupt, example, vocab, key)
    inputs = tuple(tuple(names([place.id for place in step.places])) for step in steps)
    ids, rows = corrupt.restore(instance, vocab)
    restored = np.array_equal(ids, example.ids) and np.array_equal(rows, example.rows)
    questions = asked(subject.task, instance, steps, vocab, names)
    about = "nothing is drawn" if isinstance(corrupt, Nothing) else renewal(subject.renew, visit)
    return Draw(visit, about, steps, inputs, questions, restored), instance


def _tokens(doc: TokenDoc, names: Names) -> tuple[Token, ...]:
    word = np.cumsum((doc.units.bits & Flag.WORD) != 0) - 1
    return tuple(map(Token, names(doc.ids), doc.ids.tolist(), word.tolist()))


def _row(example: Example, names: Names) -> tuple[Token, ...]:
    word = np.cumsum((example.units.bits & Flag.WORD) != 0) - 1
    columns = (example.ids, word, example.segment, example.fixed)
    return tuple(map(Token, names(example.ids), *(column.tolist() for column in columns)))


def _pieces(document: Document, layer: Layer) -> tuple[str, ...]:
    if layer not in document.marks:
        return ()
    spans = document.marks[layer].spans
    return tuple(document.text[a:b] for a, b in zip(spans.start.tolist(), spans.end.tolist(), strict=True))


def _streams(task: Task, instance: Instance) -> tuple[Sight, ...]:
    """Who sees whom in each stream of the view, on this row."""
    inputs = instance.inputs
    rank = next((target.rank for target in instance.targets if isinstance(target, Ordering)), np.zeros(0, np.int32))
    turns = np.argsort(rank, kind="stable")[int((rank < 0).sum()) :].tolist()
    layout = Layout.of(len(inputs.ids), document=inputs.document.tolist(), rank=rank.tolist())
    found = []
    for stream in task.view.streams:
        grid = stream.rule.allows(layout)
        if stream.starts_from is Start.BLANK:
            about = f"reads {stream.reads_from}; a place starts from its number, not its token"
            found.append(Sight(stream.name, about, grid, tuple((place,) for place in turns)))
        else:
            rest = _alike(grid, [place for place in range(len(grid)) if place not in turns])
            found.append(Sight(stream.name, f"reads {stream.reads_from}", grid, (*((turn,) for turn in turns), *rest)))
    return tuple(found)


def _alike(grid: Bools, places: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Places that see the same, together."""
    groups: dict[bytes, list[int]] = {}
    for place in places:
        groups.setdefault(grid[place].tobytes(), []).append(place)
    return tuple(tuple(group) for group in groups.values())


def _notes(task: Task, document: Document, ground: Ground) -> Sequence[str]:
    """What a reader should know about this walk beyond the rule itself."""
    notes = [
        f"no {layer} is marked here, so words are chosen; mark one with --{layer} TEXT"
        for layer in (Layer.PHRASE, Layer.ENTITY)
        if layer in task.needs and not _pieces(document, layer)
    ]
    if isinstance(task.corrupt, MaskOut) and task.corrupt.replace.similar:
        notes.append(f"similar words: {ground.similar}")
    if Layer.SENTENCE in task.needs and len(_pieces(document, Layer.SENTENCE)) == 1:
        notes.append("the text is one sentence, so there is no other order to put its sentences into")
    return notes

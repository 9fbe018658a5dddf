"""The page of one walk or of several: the values of its template. The page runs no script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from unmask.core.errors import InputError
from unmask.core.records import UnitKind
from unmask.reports.charts.svg import draw_grid
from unmask.reports.html import render_page
from unmask.reports.text.walk_labels import FATE_MARKS, WalkStage, join_tokens, spaced_tokens
from unmask.walks.describe import SEGMENT_LETTERS, describe_selection, pluralize
from unmask.walks.targets import DecoderScript, OtherTarget, PredictedToken, PredictedTokens, ReadableTarget
from unmask.walks.trace import TokenFate, TraceStep
from unmask.walks.walk import CorruptedRow, Walk, WalkToken, prediction_turns, raised_rates_note

_UNITS = {UnitKind.WORD: "words 词", UnitKind.PHRASE: "phrases 短语", UnitKind.ENTITY: "entities 实体"}


class Chip(NamedTuple):
    """A token in a frame: a note below it, and the number of its span."""

    text: str
    below: str = ""
    badge: int = 0
    css: str = ""
    title: str = ""


class TextRun(NamedTuple):
    """Running text of one fate, with the space before it and a raised mark; unmarked without a class."""

    gap: str
    text: str
    css: str = ""
    raised: str = ""


class CompactRow(NamedTuple):
    """A corrupted row as running text: its input and its targets."""

    label: str
    input: list[TextRun]
    targets: list[list[TextRun]]


class ShownTarget(NamedTuple):
    """A target: its description, with the chips of a decoder or with pairs of an input and a predicted token."""

    description: str
    chips: list[Chip]
    answers: list[tuple[Chip, str]]


def write_page(walks: Sequence[Walk], path: Path) -> None:
    """Write the page to a file."""
    try:
        path.write_text(walk_page(walks), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}). Choose another file for --html.") from error


def walk_page(walks: Sequence[Walk]) -> str:
    """The whole page: one walk in full, or several in folds."""
    title = walks[0].target.name if len(walks) == 1 else "one sentence, every rule"
    values = {
        "walks": [_walk_values(walk) for walk in walks],
        "names": WalkStage,
        "fates": list(_legend(walks)),
        "raised_note": raised_rates_note(walks),
    }
    return render_page("walk.html", f"walk: {title}", values, ("walk.css",))


def _legend(walks: Sequence[Walk]) -> Iterator[tuple[str, str, str]]:
    """The fates on the page: class, letter, description."""
    used = {place.fate for walk in walks for row in walk.corrupted_rows for place in row.steps[-1].positions}
    for fate, mark in FATE_MARKS.items():
        if fate in used and mark.letter:
            yield str(fate), mark.letter, f"{mark.description} {mark.term}"


def _walk_values(walk: Walk) -> dict[str, object]:
    row = walk.corrupted_rows[0]
    several = f"; the text fills {walk.num_rows} rows and this is the first" if walk.num_rows > 1 else ""
    facts = (("rule", walk.selection), ("budget", walk.budget), ("draw", row.description))
    return {
        "walk": walk,
        "short_name": walk.target.name.removeprefix("rule "),
        "compact": _compact("sees", row),
        "units": [(_UNITS[layer], found) for layer, found in walk.units if found],
        "tokens": _by_word(walk.tokens, (Chip(token.text, str(token.id)) for token in walk.tokens)),
        "token_count": pluralize(len(walk.tokens), "token"),
        "row": _by_word(walk.row, _row_chips(walk)),
        "row_note": f"{pluralize(len(walk.row), 'token')} with the special ones{several}",
        "selection_facts": [(name, value) for name, value in facts if value],
        "notes": [note for note in (walk.raised_rate_note, *walk.notes) if note],
        "selection": _selection(walk, row),
        "steps": list(_steps(walk, row)),
        "targets": [_target(target) for target in row.targets],
        "grids": _grids(walk),
        "is_restored": row.is_restored,
        "further": [_compact(f"visit {one.visit}", one) for one in walk.further_rows],
    }


def _by_word(tokens: Sequence[WalkToken], chips: Iterable[Chip]) -> list[list[Chip]]:
    """The chips grouped by word; special tokens get their class."""
    shown = [
        (token.word, chip._replace(css="special") if token.protected else chip)
        for token, chip in zip(tokens, chips, strict=True)
    ]
    return [[chip for _, chip in group] for _, group in groupby(shown, lambda pair: pair[0])]


def _row_chips(walk: Walk) -> Iterator[Chip]:
    """The tokens of the row with their positions, and their segments if there are two."""
    is_pair = any(token.segment for token in walk.row)
    for position, token in enumerate(walk.row):
        yield Chip(token.text, f"{position} {SEGMENT_LETTERS[token.segment]}" if is_pair else str(position))


def _selection(walk: Walk, row: CorruptedRow) -> list[list[Chip]]:
    """The row with its selected spans numbered; empty without any."""
    number = {at: n for step in row.steps for n, span in enumerate(step.selected_spans, 1) for at in span.origins}
    chips = (
        Chip(token.text, str(at), _badge(number.get(at, 0), number.get(at - 1, 0)), "chosen" if at in number else "")
        for at, token in enumerate(walk.row)
    )
    return _by_word(walk.row, chips) if number else []


def _badge(number: int, before: int = 0) -> int:
    """The number of a span on its first token, 0 elsewhere."""
    return number if number != before else 0


def _steps(walk: Walk, row: CorruptedRow) -> Iterator[tuple[str, list[tuple[str, Chip]]]]:
    """Each step of the corruption: its description if there are several, and its columns."""
    original = tuple(token.text for token in walk.row)
    for number, (step, tokens) in enumerate(zip(row.steps, row.inputs, strict=True), start=1):
        about = f"step {number}: {describe_selection(step.corruption)}" if len(row.steps) > 1 else ""
        yield about, _columns(step, tokens, original if step.is_in_place else tokens, prediction_turns(row))


def _columns(
    step: TraceStep, tokens: Sequence[str], before: Sequence[str], turns: dict[int, str]
) -> list[tuple[str, Chip]]:
    """Every position with its token, and the original token where it was replaced."""
    columns, last_group = [], 0
    for at, (place, token, original) in enumerate(zip(step.positions, tokens, before, strict=True)):
        below = f"{at} turn {turns[at]}" if at in turns else f"{at} {FATE_MARKS[place.fate].letter}".rstrip()
        badge = 0 if at in turns else _badge(place.group, last_group)
        last_group = place.group
        columns.append((original if original != token else "", _fate_chip(place.fate, token, below, badge)))
    return columns


def _fate_chip(fate: TokenFate, token: str, below: str, badge: int) -> Chip:
    css = "" if fate is TokenFate.SHOWN else str(fate)
    return Chip(token, below, badge, css, FATE_MARKS[fate].description)


def _target(target: ReadableTarget) -> ShownTarget:
    chips: list[Chip] = []
    answers: list[tuple[Chip, str]] = []
    if isinstance(target, DecoderScript):
        groups = pairwise([0, *(one.group for one in target.tokens)])
        badges = [_badge(number, last) for last, number in groups]
        chips = [_fate_chip(one.fate, one.token, "", b) for one, b in zip(target.tokens, badges, strict=True)]
    elif isinstance(target, PredictedTokens):
        turns = enumerate(target.tokens, start=1)
        answers = [_answer(one, turn if target.is_sequential else 0) for turn, one in turns]
    return ShownTarget(target.description, chips, answers)


def _answer(one: PredictedToken, turn: int) -> tuple[Chip, str]:
    """A masked position with its target token; in a drawn order, the turn instead of the masked token."""
    if turn:
        return Chip(f"turn {turn}", f"place {one.position}"), one.target_token
    return _fate_chip(one.fate, one.input_token, str(one.position), _badge(one.group)), one.target_token


def _grids(walk: Walk) -> list[tuple[str, str]]:
    """The attention pattern of each stream with its caption."""
    tokens, several = walk.corrupted_rows[0].inputs[-1], len(walk.streams) > 1
    return [
        (f"{one.name}: {one.description}" if several else "queries ↓, keys →", draw_grid(one, tokens))
        for one in walk.streams
    ]


def _compact(label: str, row: CorruptedRow) -> CompactRow:
    """Input and targets as running text."""
    turns = prediction_turns(row)
    seen = zip(spaced_tokens(row.inputs[-1]), row.steps[-1].positions, strict=True)
    text = [_run(gap, token, place.fate, turns.get(at, "")) for at, ((gap, token), place) in enumerate(seen)]
    return CompactRow(label, text, [list(_runs(one)) for one in row.targets if not isinstance(one, OtherTarget)])


def _run(gap: str, token: str, fate: TokenFate, turn: str = "") -> TextRun:
    if fate is TokenFate.SHOWN:
        return TextRun(gap, token)
    return TextRun(gap, token, str(fate), turn or (FATE_MARKS[fate].letter if FATE_MARKS[fate].superscript else ""))


def _runs(target: PredictedTokens | DecoderScript) -> Iterator[TextRun]:
    if isinstance(target, DecoderScript):
        written = zip(spaced_tokens([one.token for one in target.tokens]), target.tokens, strict=True)
        for (fate, _), run in groupby(written, lambda pair: (pair[1].fate, pair[1].group)):
            yield _run("", "".join(gap + token for (gap, token), _ in run), fate)
    elif target.is_sequential:
        yield TextRun("", " → ".join(one.target_token for one in target.tokens))
    else:
        groups = groupby(target.tokens, lambda one: one.group)
        yield TextRun("", " · ".join(join_tokens([one.target_token for one in group]) for _, group in groups))

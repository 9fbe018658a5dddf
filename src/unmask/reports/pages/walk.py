"""A walk as one page: a single file that opens in any browser, with no network.

What arrives: one `Walk`, or several. What leaves: HTML with its style and pictures inside, for screens of any width, in
light and in dark; all text can be selected.
What never happens here: a script, a request, or text that was not escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

from unmask.core.errors import InputError
from unmask.core.records import UnitKind
from unmask.reports.charts.attention_grid import draw_grid
from unmask.reports.html.elements import EMPTY, Html, span, tag, text
from unmask.reports.html.page import page
from unmask.reports.text.walk_labels import FATE_MARKS, WalkStage, join_tokens, spaced_tokens
from unmask.walks.describe import SEGMENT_LETTERS, describe_selection, pluralize
from unmask.walks.targets import DecoderScript, OtherTarget, PredictedToken, PredictedTokens, ReadableTarget
from unmask.walks.trace import TokenFate, TraceStep
from unmask.walks.walk import CorruptedRow, Walk, WalkToken, prediction_turns, raised_rates_note

_UNITS = {UnitKind.WORD: "words 词", UnitKind.PHRASE: "phrases 短语", UnitKind.ENTITY: "entities 实体"}


def write_page(walks: Sequence[Walk], path: Path) -> None:
    """Write the page to a file."""
    try:
        path.write_text(walk_page(walks), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}). Choose another file for --html.") from error


def walk_page(walks: Sequence[Walk]) -> str:
    """The whole page: one walk in full, or several that open one by one."""
    title = walks[0].target.name if len(walks) == 1 else "one sentence, every rule"
    body = _article(walks[0]) if len(walks) == 1 else _collection(walks)
    footer = tag("footer", "", text("made by unmask walk: the parts that train a network worked on this text"))
    return page(f"walk: {title}", tag("main", "", body, footer), ("walk.css",))


def _collection(walks: Sequence[Walk]) -> Html:
    head = tag("h1", "", text("one sentence, every rule"), tag("small", "", text("一句话，所有规则")))
    lead = tag("p", "sentence", text(walks[0].text))
    note = tag("p", "note", text(raised_rates_note(walks))) if raised_rates_note(walks) else EMPTY
    return Html(tag("header", "", head, lead, _legend(walks), note) + "".join(_folded(walk) for walk in walks))


def _folded(walk: Walk) -> Html:
    subject = walk.target
    name = tag("h2", "", text(f"{subject.name.removeprefix('rule ')} {subject.term}"))
    summary = tag(
        "summary",
        "",
        name,
        span("soft", f" {subject.summary} · {subject.paper}"),
        *_compact("sees", walk.corrupted_rows[0]),
    )
    return tag("details", "", summary, *_stages(walk))


def _article(walk: Walk) -> Html:
    subject = walk.target
    head = tag("h1", "", text(subject.name), tag("small", "", text(subject.term)))
    says = tag("p", "", text(subject.summary), span("soft", f" · {subject.paper}"))
    walked = tag("p", "note", text(subject.part_note)) if subject.part_note else EMPTY
    return Html(tag("header", "", head, says, walked, _legend([walk])) + "".join(_stages(walk)))


def _legend(walks: Sequence[Walk]) -> Html:
    """What the colours mean: those that appear on the page."""
    used = {place.fate for walk in walks for draw in walk.corrupted_rows for place in draw.steps[-1].positions}
    entries = []
    for fate, mark in FATE_MARKS.items():
        if fate in used and mark.letter:
            chip = tag("span", f"chip {fate}", text(mark.letter))
            entries.append(tag("span", "", chip, text(f"{mark.description} {mark.term}")))
    return tag("div", "legend", *entries) if entries else EMPTY


def _stages(walk: Walk) -> Iterator[Html]:
    draw = walk.corrupted_rows[0]
    yield _stage(WalkStage.TEXT, *(tag("p", "sentence", text(sentence)) for sentence in walk.sentences))
    yield _stage(WalkStage.WORDS, *_units(walk))
    about = tag("p", "about", text(f"{pluralize(len(walk.tokens), 'token')}; ids of {walk.context.vocab_source}"))
    yield _stage(WalkStage.TOKENS, _row(_by_word([(token, token.id, EMPTY, "") for token in walk.tokens])), about)
    yield _stage(WalkStage.EXAMPLE, *_example(walk))
    yield _stage(WalkStage.SELECTION, *_selection(walk, draw))
    yield _stage(WalkStage.INPUT, *_input(walk, draw))
    yield _stage(WalkStage.TARGETS, *(part for asked in draw.targets for part in _target(asked)))
    yield _stage(WalkStage.SIGHT, tag("p", "", text(walk.attention)), _grids(walk))
    came = ("yes", "✓ exactly") if draw.is_restored else ("no", "✗ no")
    told = tag(
        "p", "", span(came[0], came[1]), text(" — from the input and the targets alone, every token comes back.")
    )
    yield _stage(WalkStage.RESTORED, told)
    others = [part for one in walk.further_rows for part in _compact(f"visit {one.visit}", one)]
    if others:
        heading = tag("h2", "", tag("span", "", text("other draws"), tag("small", "", text("其他抽样"))))
        yield tag("section", "", heading, tag("div", "", *others))


def _stage(stage: WalkStage, *content: Html) -> Html:
    english, chinese = stage.value
    name = tag("span", "", text(english), tag("small", "", text(chinese)))
    return tag("section", "", tag("h2", "", span("n", stage.number), name), tag("div", "", *content))


def _units(walk: Walk) -> Iterator[Html]:
    for layer, found in walk.units:
        if found:
            several = len([one for _, one in walk.units if one]) > 1
            yield tag("p", "about", text(_UNITS[layer])) if several else EMPTY
            yield _row([span("unit", word) for word in found])
    if walk.context.segmentation_note:
        yield tag("p", "about", text(walk.context.segmentation_note))


def _example(walk: Walk) -> Iterator[Html]:
    pair = any(token.segment for token in walk.row)
    notes = [
        f"{place} {SEGMENT_LETTERS[token.segment]}" if pair else str(place) for place, token in enumerate(walk.row)
    ]
    yield _row(_by_word([(token, note, EMPTY, "") for token, note in zip(walk.row, notes, strict=True)]))
    rows = f"; the text fills {walk.num_rows} rows and this is the first" if walk.num_rows > 1 else ""
    yield tag("p", "about", text(f"{pluralize(len(walk.row), 'token')} with the special ones{rows}"))
    if walk.other_text_note:
        yield tag("p", "note", text(walk.other_text_note))


def _selection(walk: Walk, draw: CorruptedRow) -> Iterator[Html]:
    facts = [("rule", walk.selection), ("budget", walk.budget), ("draw", draw.description)]
    yield tag("dl", "", *(part for k, v in facts if v for part in (tag("dt", "", text(k)), tag("dd", "", text(v)))))
    for note in filter(None, (walk.raised_rate_note, *walk.notes)):
        yield tag("p", "note", text(note))
    number = {at: n for step in draw.steps for n, one in enumerate(step.selected_spans, 1) for at in one.origins}
    if number:
        cells = [
            (token, place, _badge(number.get(place, 0), number.get(place - 1, 0)), "chosen" if place in number else "")
            for place, token in enumerate(walk.row)
        ]
        yield _row(_by_word(cells))


def _by_word(cells: Sequence[tuple[WalkToken, object, Html, str]]) -> list[Html]:
    """Chips, those of one word in a frame of their own."""
    words = []
    for _, group in groupby(cells, lambda cell: cell[0].word):
        chips = [
            _chip(token.text, note, badge, "special" if token.protected else css) for token, note, badge, css in group
        ]
        words.append(tag("span", "word", *chips))
    return words


def _chip(token: str, below: object, badge: Html, css: str) -> Html:
    return tag("span", f"chip {css}".rstrip(), text(token), _below(str(below)), badge)


def _badge(number: int, before: int = 0) -> Html:
    """The number of a chosen span, on its first token only."""
    return span("badge", number) if number and number != before else EMPTY


def _row(children: Sequence[Html]) -> Html:
    return tag("div", "row", *children)


def _input(walk: Walk, draw: CorruptedRow) -> Iterator[Html]:
    yield tag("p", "", text(walk.replacement))
    row = tuple(token.text for token in walk.row)
    for number, (step, tokens) in enumerate(zip(draw.steps, draw.inputs, strict=True), start=1):
        if len(draw.steps) > 1:
            yield tag("p", "about", text(f"step {number}: {describe_selection(step.corruption)}"))
        yield _row(_columns(step, tokens, row if step.is_in_place else tokens, prediction_turns(draw)))


def _columns(step: TraceStep, tokens: Sequence[str], before: Sequence[str], turns: dict[int, str]) -> list[Html]:
    """Every place with what stands there; above it what stood there, where something else does now."""
    columns, last = [], 0
    for at, (place, token, old) in enumerate(zip(step.positions, tokens, before, strict=True)):
        was = (span("was", old), span("down", "↓")) if old != token else ()
        below = f"{at} turn {turns[at]}" if at in turns else f"{at} {FATE_MARKS[place.fate].letter}".rstrip()
        badge = EMPTY if at in turns else _badge(place.group, last)
        last = place.group
        columns.append(tag("span", "column", *was, _position(place.fate, token, below, badge)))
    return columns


def _position(fate: TokenFate, token: str, below: str, badge: Html) -> Html:
    css = "chip" if fate is TokenFate.SHOWN else f"chip {fate}"
    return tag("span", css, text(token), _below(below), badge, title=FATE_MARKS[fate].description)


def _below(note: str) -> Html:
    return tag("sub", "", text(note)) if note else EMPTY


def _target(asked: ReadableTarget) -> Iterator[Html]:
    yield tag("p", "", text(asked.description))
    if isinstance(asked, DecoderScript):
        groups = [0, *(one.group for one in asked.tokens)]
        badges = [_badge(number, last) for last, number in pairwise(groups)]
        yield _row([_position(one.fate, one.token, "", b) for one, b in zip(asked.tokens, badges, strict=True)])
    elif isinstance(asked, PredictedTokens):
        yield _row(
            [
                _predicted_token(one, turn if asked.is_sequential else 0)
                for turn, one in enumerate(asked.tokens, start=1)
            ]
        )


def _predicted_token(one: PredictedToken, turn: int) -> Html:
    asked = _position(one.fate, one.input_token, str(one.position), _badge(one.group))
    first = tag("span", "chip", text(f"turn {turn}"), _below(f"place {one.position}")) if turn else asked
    return tag("span", "answer", first, span("to", "→"), span("says", one.target_token))


def _grids(walk: Walk) -> Html:
    tokens = walk.corrupted_rows[0].inputs[-1]
    several = len(walk.streams) > 1
    captions = [
        text(f"{one.name}: {one.description}" if several else "who reads ↓, what may be read →") for one in walk.streams
    ]
    pictures = [draw_grid(one, tokens) for one in walk.streams]
    figures = (tag("figure", "", tag("figcaption", "", c), p) for c, p in zip(captions, pictures, strict=True))
    return tag("div", "grids", *figures)


def _compact(label: str, draw: CorruptedRow) -> Iterator[Html]:
    """What is seen and what must be said, in running text."""
    turns = prediction_turns(draw)
    seen = zip(spaced_tokens(draw.inputs[-1]), draw.steps[-1].positions, strict=True)
    runs = [_run(gap, token, place.fate, turns.get(at, "")) for at, ((gap, token), place) in enumerate(seen)]
    yield tag("div", "draw", span("soft", label), tag("div", "", *runs))
    for asked in draw.targets:
        if not isinstance(asked, OtherTarget):
            yield tag("div", "draw last", span("soft", "says"), tag("div", "", *_target_text(asked)))


def _run(gap: str, token: str, fate: TokenFate, turn: str = "") -> Html:
    raised = turn or (FATE_MARKS[fate].letter if FATE_MARKS[fate].superscript else "")
    if fate is TokenFate.SHOWN:
        return text(gap + token)
    return Html(text(gap) + tag("mark", str(fate), text(token), tag("sup", "", text(raised)) if raised else EMPTY))


def _target_text(asked: PredictedTokens | DecoderScript) -> Iterator[Html]:
    if isinstance(asked, DecoderScript):
        written = zip(spaced_tokens([one.token for one in asked.tokens]), asked.tokens, strict=True)
        for (fate, _), run in groupby(written, lambda pair: (pair[1].fate, pair[1].group)):
            yield _run("", "".join(gap + token for (gap, token), _ in run), fate)
    elif asked.is_sequential:
        yield text(" → ".join(one.target_token for one in asked.tokens))
    else:
        spans = (
            join_tokens([one.target_token for one in group])
            for _, group in groupby(asked.tokens, lambda one: one.group)
        )
        yield text(" · ".join(spans))

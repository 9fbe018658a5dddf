"""A walk as one page: a single file that opens in any browser, with no network.

What arrives: one `Walk`, or several. What leaves: HTML with its style and pictures inside, for screens of any width, in
light and in dark; all text can be selected.
What never happens here: a script, a request, or text that was not escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

from unmask.errors import InputError
from unmask.records import Layer
from unmask.report.grid_svg import grid_svg
from unmask.report.labels import MARKS, Stage, pieces, spelled
from unmask.report.markup import NOTHING, Html, span, tag, text
from unmask.report.page import page
from unmask.walk.asked import Answer, Answers, Asked, Saying, Script
from unmask.walk.run import Draw, Token, Walk, raised_rates, turns_of
from unmask.walk.trace import Fate, Traced
from unmask.walk.wording import SEGMENTS, count, where

_UNITS = {Layer.WORD: "words 词", Layer.PHRASE: "phrases 短语", Layer.ENTITY: "entities 实体"}


def write_page(walks: Sequence[Walk], path: Path) -> None:
    """Write the page to a file."""
    try:
        path.write_text(walk_page(walks), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}). Choose another file for --html.") from error


def walk_page(walks: Sequence[Walk]) -> str:
    """The whole page: one walk in full, or several that open one by one."""
    title = walks[0].subject.name if len(walks) == 1 else "one sentence, every rule"
    body = _article(walks[0]) if len(walks) == 1 else _collection(walks)
    footer = tag("footer", "", text("made by unmask walk: the parts that train a network worked on this text"))
    return page(f"walk: {title}", tag("main", "", body, footer), ("walk.css",))


def _collection(walks: Sequence[Walk]) -> Html:
    head = tag("h1", "", text("one sentence, every rule"), tag("small", "", text("一句话，所有规则")))
    lead = tag("p", "sentence", text(walks[0].text))
    note = tag("p", "note", text(raised_rates(walks))) if raised_rates(walks) else NOTHING
    return Html(tag("header", "", head, lead, _legend(walks), note) + "".join(_folded(walk) for walk in walks))


def _folded(walk: Walk) -> Html:
    subject = walk.subject
    name = tag("h2", "", text(f"{subject.name.removeprefix('rule ')} {subject.term}"))
    summary = tag(
        "summary", "", name, span("soft", f" {subject.says} · {subject.paper}"), *_compact("sees", walk.draws[0])
    )
    return tag("details", "", summary, *_stages(walk))


def _article(walk: Walk) -> Html:
    subject = walk.subject
    head = tag("h1", "", text(subject.name), tag("small", "", text(subject.term)))
    says = tag("p", "", text(subject.says), span("soft", f" · {subject.paper}"))
    walked = tag("p", "note", text(subject.walked)) if subject.walked else NOTHING
    return Html(tag("header", "", head, says, walked, _legend([walk])) + "".join(_stages(walk)))


def _legend(walks: Sequence[Walk]) -> Html:
    """What the colours mean: those that appear on the page."""
    used = {place.fate for walk in walks for draw in walk.draws for place in draw.steps[-1].places}
    entries = []
    for fate, mark in MARKS.items():
        if fate in used and mark.letter:
            chip = tag("span", f"chip {fate}", text(mark.letter))
            entries.append(tag("span", "", chip, text(f"{mark.words} {mark.term}")))
    return tag("div", "legend", *entries) if entries else NOTHING


def _stages(walk: Walk) -> Iterator[Html]:
    draw = walk.draws[0]
    yield _stage(Stage.TEXT, *(tag("p", "sentence", text(sentence)) for sentence in walk.sentences))
    yield _stage(Stage.WORDS, *_units(walk))
    about = tag("p", "about", text(f"{count(len(walk.tokens), 'token')}; ids of {walk.ground.about}"))
    yield _stage(Stage.TOKENS, _row(_by_word([(token, token.id, NOTHING, "") for token in walk.tokens])), about)
    yield _stage(Stage.EXAMPLE, *_example(walk))
    yield _stage(Stage.SELECTION, *_selection(walk, draw))
    yield _stage(Stage.INPUT, *_input(walk, draw))
    yield _stage(Stage.TARGETS, *(part for asked in draw.asked for part in _asked(asked)))
    yield _stage(Stage.SIGHT, tag("p", "", text(walk.sight)), _grids(walk))
    came = ("yes", "✓ exactly") if draw.restored else ("no", "✗ no")
    told = tag(
        "p", "", span(came[0], came[1]), text(" — from the input and the targets alone, every token comes back.")
    )
    yield _stage(Stage.RESTORED, told)
    others = [part for one in walk.others for part in _compact(f"visit {one.visit}", one)]
    if others:
        heading = tag("h2", "", tag("span", "", text("other draws"), tag("small", "", text("其他抽样"))))
        yield tag("section", "", heading, tag("div", "", *others))


def _stage(stage: Stage, *content: Html) -> Html:
    english, chinese = stage.value
    name = tag("span", "", text(english), tag("small", "", text(chinese)))
    return tag("section", "", tag("h2", "", span("n", stage.number), name), tag("div", "", *content))


def _units(walk: Walk) -> Iterator[Html]:
    for layer, found in walk.units:
        if found:
            several = len([one for _, one in walk.units if one]) > 1
            yield tag("p", "about", text(_UNITS[layer])) if several else NOTHING
            yield _row([span("unit", word) for word in found])
    if walk.ground.segmented:
        yield tag("p", "about", text(walk.ground.segmented))


def _example(walk: Walk) -> Iterator[Html]:
    pair = any(token.segment for token in walk.row)
    notes = [f"{place} {SEGMENTS[token.segment]}" if pair else str(place) for place, token in enumerate(walk.row)]
    yield _row(_by_word([(token, note, NOTHING, "") for token, note in zip(walk.row, notes, strict=True)]))
    rows = f"; the text fills {walk.rows} rows and this is the first" if walk.rows > 1 else ""
    yield tag("p", "about", text(f"{count(len(walk.row), 'token')} with the special ones{rows}"))
    if walk.second:
        yield tag("p", "note", text(walk.second))


def _selection(walk: Walk, draw: Draw) -> Iterator[Html]:
    facts = [("rule", walk.where), ("budget", walk.budget), ("draw", draw.about)]
    yield tag("dl", "", *(part for k, v in facts if v for part in (tag("dt", "", text(k)), tag("dd", "", text(v)))))
    for note in filter(None, (walk.widened, *walk.notes)):
        yield tag("p", "note", text(note))
    number = {at: n for step in draw.steps for n, one in enumerate(step.chosen, 1) for at in one.origins}
    if number:
        cells = [
            (token, place, _badge(number.get(place, 0), number.get(place - 1, 0)), "chosen" if place in number else "")
            for place, token in enumerate(walk.row)
        ]
        yield _row(_by_word(cells))


def _by_word(cells: Sequence[tuple[Token, object, Html, str]]) -> list[Html]:
    """Chips, those of one word in a frame of their own."""
    words = []
    for _, group in groupby(cells, lambda cell: cell[0].word):
        chips = [_chip(token.text, note, badge, "special" if token.fixed else css) for token, note, badge, css in group]
        words.append(tag("span", "word", *chips))
    return words


def _chip(token: str, below: object, badge: Html, css: str) -> Html:
    return tag("span", f"chip {css}".rstrip(), text(token), _below(str(below)), badge)


def _badge(number: int, before: int = 0) -> Html:
    """The number of a chosen span, on its first token only."""
    return span("badge", number) if number and number != before else NOTHING


def _row(children: Sequence[Html]) -> Html:
    return tag("div", "row", *children)


def _input(walk: Walk, draw: Draw) -> Iterator[Html]:
    yield tag("p", "", text(walk.shows))
    row = tuple(token.text for token in walk.row)
    for number, (step, tokens) in enumerate(zip(draw.steps, draw.inputs, strict=True), start=1):
        if len(draw.steps) > 1:
            yield tag("p", "about", text(f"step {number}: {where(step.part)}"))
        yield _row(_columns(step, tokens, row if step.in_place else tokens, turns_of(draw)))


def _columns(step: Traced, tokens: Sequence[str], before: Sequence[str], turns: dict[int, str]) -> list[Html]:
    """Every place with what stands there; above it what stood there, where something else does now."""
    columns, last = [], 0
    for at, (place, token, old) in enumerate(zip(step.places, tokens, before, strict=True)):
        was = (span("was", old), span("down", "↓")) if old != token else ()
        below = f"{at} turn {turns[at]}" if at in turns else f"{at} {MARKS[place.fate].letter}".rstrip()
        badge = NOTHING if at in turns else _badge(place.group, last)
        last = place.group
        columns.append(tag("span", "column", *was, _place(place.fate, token, below, badge)))
    return columns


def _place(fate: Fate, token: str, below: str, badge: Html) -> Html:
    css = "chip" if fate is Fate.SHOWN else f"chip {fate}"
    return tag("span", css, text(token), _below(below), badge, title=MARKS[fate].words)


def _below(note: str) -> Html:
    return tag("sub", "", text(note)) if note else NOTHING


def _asked(asked: Asked) -> Iterator[Html]:
    yield tag("p", "", text(asked.how))
    if isinstance(asked, Script):
        groups = [0, *(one.group for one in asked.tokens)]
        badges = [_badge(number, last) for last, number in pairwise(groups)]
        yield _row([_place(one.fate, one.token, "", b) for one, b in zip(asked.tokens, badges, strict=True)])
    elif isinstance(asked, Answers):
        yield _row([_answer(one, turn if asked.in_turn else 0) for turn, one in enumerate(asked.answers, start=1)])


def _answer(one: Answer, turn: int) -> Html:
    asked = _place(one.fate, one.shown, str(one.place), _badge(one.group))
    first = tag("span", "chip", text(f"turn {turn}"), _below(f"place {one.place}")) if turn else asked
    return tag("span", "answer", first, span("to", "→"), span("says", one.says))


def _grids(walk: Walk) -> Html:
    tokens = walk.draws[0].inputs[-1]
    several = len(walk.streams) > 1
    captions = [
        text(f"{one.name}: {one.about}" if several else "who reads ↓, what may be read →") for one in walk.streams
    ]
    pictures = [grid_svg(one, tokens) for one in walk.streams]
    figures = (tag("figure", "", tag("figcaption", "", c), p) for c, p in zip(captions, pictures, strict=True))
    return tag("div", "grids", *figures)


def _compact(label: str, draw: Draw) -> Iterator[Html]:
    """What is seen and what must be said, in running text."""
    turns = turns_of(draw)
    seen = zip(pieces(draw.inputs[-1]), draw.steps[-1].places, strict=True)
    runs = [_run(gap, token, place.fate, turns.get(at, "")) for at, ((gap, token), place) in enumerate(seen)]
    yield tag("div", "draw", span("soft", label), tag("div", "", *runs))
    for asked in draw.asked:
        if not isinstance(asked, Saying):
            yield tag("div", "draw last", span("soft", "says"), tag("div", "", *_said(asked)))


def _run(gap: str, token: str, fate: Fate, turn: str = "") -> Html:
    raised = turn or (MARKS[fate].letter if MARKS[fate].raised else "")
    if fate is Fate.SHOWN:
        return text(gap + token)
    return Html(text(gap) + tag("mark", str(fate), text(token), tag("sup", "", text(raised)) if raised else NOTHING))


def _said(asked: Answers | Script) -> Iterator[Html]:
    if isinstance(asked, Script):
        written = zip(pieces([one.token for one in asked.tokens]), asked.tokens, strict=True)
        for (fate, _), run in groupby(written, lambda pair: (pair[1].fate, pair[1].group)):
            yield _run("", "".join(gap + token for (gap, token), _ in run), fate)
    elif asked.in_turn:
        yield text(" → ".join(one.says for one in asked.answers))
    else:
        spans = (spelled([one.says for one in group]) for _, group in groupby(asked.answers, lambda one: one.group))
        yield text(" · ".join(spans))

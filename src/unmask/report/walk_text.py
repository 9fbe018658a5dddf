"""A walk as text for a terminal of 80 columns or more.

What arrives: a `Walk`. What leaves: lines of rich text; without colour nothing is lost, because every mark is a letter.
What never happens here: finding out what happened. The walk knows; this file only writes it down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import set_cell_size
from rich.text import Text

from unmask.records import Layer
from unmask.report.flow import MARGIN, Atom, broken, flow, wrapped
from unmask.report.labels import MARKS, Stage, pieces, span_of, spelled
from unmask.report.strip import Cell, Column, strip
from unmask.views import ENCODER
from unmask.walk.asked import Answers, Asked, Saying, Script
from unmask.walk.run import Draw, Sight, Token, Walk, raised_rates, turns_of
from unmask.walk.trace import Place, Traced
from unmask.walk.wording import SEGMENTS, count, where

_UNITS = {Layer.WORD: "words", Layer.PHRASE: "phrases", Layer.ENTITY: "entities"}
_MOST_SHOWN = 20
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def walk_lines(walk: Walk, width: int) -> Iterator[Text]:
    """The whole walk, stage by stage."""
    yield from _title(walk, width)
    yield from _heading(Stage.TEXT)
    yield from wrapped("", "  ".join(walk.sentences), width)
    yield from _words(walk, width)
    yield from _tokens(walk, width)
    yield from _example(walk, width)
    draw = walk.draws[0]
    yield from _selection(walk, draw, width)
    yield from _input(walk, draw, width)
    yield from _heading(Stage.TARGETS)
    for asked in draw.asked:
        yield from _asked(asked, width)
    yield from _sight(walk, width)
    yield from _heading(Stage.RESTORED)
    came_back = "yes: from input and targets alone, all tokens come back exactly" if draw.restored else "NO"
    yield from wrapped("", came_back, width)
    yield from _others(walk, width)


def summary_lines(walks: Sequence[Walk], width: int) -> Iterator[Text]:
    """Several walks, one draw each: the name, what is seen, and what must be said."""
    for walk in walks:
        subject = walk.subject
        head = Text.assemble((subject.name.removeprefix("rule ").ljust(14), "bold"), subject.says)
        yield head.append(f"  {subject.paper.split(',')[0]}", style="dim")
        yield from _compact("sees", walk.draws[0], width)
    yield Text()
    legend = [f"{mark.raised} {mark.words}" for mark in MARKS.values() if mark.raised]
    yield from broken(Text("   ".join((*legend, "¹ ² ³ said in this order")), style="dim"), width)
    if raised_rates(walks):
        yield from broken(Text(raised_rates(walks), style="yellow"), width)
    yield Text("Every stage of one of them: unmask walk --rule NAME", style="dim")


def _title(walk: Walk, width: int) -> Iterator[Text]:
    subject = walk.subject
    yield Text.assemble((f"{subject.name} {subject.term}".rstrip(), "bold reverse"), f"  {subject.says}")
    yield Text(subject.paper, style="dim")
    if subject.walked:
        yield from broken(Text(subject.walked, style="yellow"), width)


def _heading(stage: Stage, about: str = "") -> Iterator[Text]:
    english, chinese = stage.value
    yield Text()
    yield Text.assemble((f"{stage.number} {english} {chinese}", "bold"), (f"   {about}" if about else "", "dim"))


def _words(walk: Walk, width: int) -> Iterator[Text]:
    yield from _heading(Stage.WORDS, f"{count(len(walk.units[0][1]), 'word')}, found once, on the text")
    for layer, found in walk.units:
        if found:
            yield from wrapped(_UNITS[layer], "|".join(found), width)
    if walk.ground.segmented:
        yield from wrapped("units", walk.ground.segmented, width, "dim")


def _tokens(walk: Walk, width: int) -> Iterator[Text]:
    yield from _heading(Stage.TOKENS, count(len(walk.tokens), "token"))
    columns = (Column((Cell(t.text), Cell(str(t.id), "dim")), bar) for t, bar in _with_bars(walk.tokens))
    yield from strip(("token", "id"), columns, width, MARGIN)
    yield from wrapped("ids", f"of {walk.ground.about}", width, "dim")


def _with_bars(tokens: Sequence[Token]) -> Iterator[tuple[Token, bool]]:
    """Each token, and whether a word begins with it."""
    for before, token in zip((None, *tokens), tokens, strict=False):
        yield token, before is not None and before.word != token.word


def _example(walk: Walk, width: int) -> Iterator[Text]:
    rows = f", the first of {walk.rows} rows" if walk.rows > 1 else ""
    yield from _heading(Stage.EXAMPLE, f"{count(len(walk.row), 'token')} with the special ones{rows}")
    pair = any(token.segment for token in walk.row)
    columns = []
    for place, (token, bar) in enumerate(_with_bars(walk.row)):
        cells = [Cell(token.text, "dim" if token.fixed else ""), Cell(str(place), "dim")]
        cells += [Cell(SEGMENTS[token.segment], "cyan" if token.segment else "")] if pair else []
        columns.append(Column(tuple(cells), bar))
    yield from strip(("token", "place", *(("segment",) if pair else ())), columns, width, MARGIN)
    if walk.second:
        yield from wrapped("note", walk.second, width, "yellow")


def _selection(walk: Walk, draw: Draw, width: int) -> Iterator[Text]:
    yield from _heading(Stage.SELECTION, draw.about)
    yield from wrapped("rule", walk.where, width)
    if walk.budget:
        yield from wrapped("budget", walk.budget, width)
    for note in filter(None, (walk.widened, *walk.notes)):
        yield from wrapped("note", note, width, "yellow")
    for step in draw.steps:
        if step.chosen:
            yield from flow("chosen", _chosen(walk, step), width)


def _chosen(walk: Walk, step: Traced) -> Iterator[Atom]:
    """The spans that one step chose, numbered, and how many tokens they are."""
    for number, span in enumerate(step.chosen, start=1):
        yield Atom("   " if number > 1 else "", f"{number} {_origin(walk, span.origins)}", "bold")
    text = sum(not token.fixed for token in walk.row)
    yield Atom("   ", f"{sum(len(span.origins) for span in step.chosen)} of {count(text, 'text token')}", "dim")


def _origin(walk: Walk, origins: Sequence[int]) -> str:
    """A chosen span as it stood in the row, with its places."""
    if not origins:
        return "(nothing: a mask is put in)"
    return f"{spelled([walk.row[at].text for at in origins])} ({span_of(origins)})"


def _input(walk: Walk, draw: Draw, width: int) -> Iterator[Text]:
    yield from _heading(Stage.INPUT)
    yield from wrapped("shown", walk.shows, width)
    for number, (step, tokens) in enumerate(zip(draw.steps, draw.inputs, strict=True), start=1):
        if len(draw.steps) > 1:
            yield from wrapped(f"step {number}", where(step.part), width, "dim")
        row = tuple(token.text for token in walk.row)
        before = row if step.in_place and tokens != row else ()
        yield from strip(*_input_strip(step.places, tokens, before, turns_of(draw)), width, MARGIN)
    yield from _legend(draw, width)


def _input_strip(
    places: Sequence[Place], tokens: Sequence[str], before: Sequence[str], turns: dict[int, str]
) -> tuple[tuple[str, ...], list[Column]]:
    """What stood there, where that can be said; what stands there now; and how it came about."""
    marked = any(MARKS[place.fate].letter for place in places)
    columns = []
    for at, (place, token) in enumerate(zip(places, tokens, strict=True)):
        mark = MARKS[place.fate]
        cells = [Cell(before[at], "dim")] if before else []
        cells.append(Cell(token, mark.style))
        letter = mark.letter + turns[at] if at in turns else f"{place.group or ''}{mark.letter}"
        cells += [Cell(letter, mark.style)] if marked else []
        columns.append(Column(tuple(cells)))
    return (*(("before",) if before else ()), "input", *(("mark",) if marked else ())), columns


def _legend(draw: Draw, width: int) -> Iterator[Text]:
    fates = [fate for fate in MARKS if MARKS[fate].letter and any(p.fate is fate for p in draw.steps[-1].places)]
    legend = Text()
    for fate in fates:
        mark = MARKS[fate]
        legend.append(mark.letter, mark.style).append(f" {mark.words} {mark.term}   ", "dim")
    if fates:
        yield from wrapped("", legend, width)


def _asked(asked: Asked, width: int) -> Iterator[Text]:
    yield from wrapped("", asked.how, width, "dim" if not isinstance(asked, Saying) else "")
    if isinstance(asked, Script):
        cells = (Cell(one.token, MARKS[one.fate].style) for one in asked.tokens)
        yield from strip(("writes",), (Column((cell,)) for cell in cells), width, MARGIN)
    elif isinstance(asked, Answers):
        yield from strip(*_answer_strip(asked), width, MARGIN)


def _answer_strip(asked: Answers) -> tuple[tuple[str, ...], list[Column]]:
    """The places, what is seen there and what must be said; in turn, the turn instead of what is seen."""
    columns = []
    for turn, one in enumerate(asked.answers, start=1):
        style = MARKS[one.fate].style
        first = Cell(str(turn)) if asked.in_turn else Cell(one.shown, style)
        columns.append(Column((first, Cell(one.says, "bold"), Cell(str(one.place), "dim"))))
    return ("turn" if asked.in_turn else "sees", "says", "place"), columns


def _sight(walk: Walk, width: int) -> Iterator[Text]:
    yield from _heading(Stage.SIGHT)
    yield from wrapped("", walk.sight, width)
    for stream in walk.streams if walk.subject.task.view != ENCODER else ():
        yield from _grid(stream, walk.draws[0].inputs[-1], width)


def _grid(stream: Sight, tokens: Sequence[str], width: int) -> Iterator[Text]:
    """A line for each place that reads, or for several that see the same."""
    count = min(len(tokens), _MOST_SHOWN)
    some = f"; the first {count} of {len(tokens)} places" if count < len(tokens) else ""
    yield from wrapped("", f"{stream.name}: {stream.about}{some}", width, "dim")
    yield Text(" " * (MARGIN + 8) + "".join(f"{place:3}" for place in range(count)), style="dim")
    for places in stream.lines:
        if places[0] < count:
            name = f"{places[0]} {tokens[places[0]]}" if len(places) == 1 else "others"
            line = Text(" " * MARGIN).append(set_cell_size(name, 8), "dim")
            for seen in stream.grid[places[0], :count]:
                line.append("  #" if seen else "  .", "green" if seen else "dim")
            yield line


def _others(walk: Walk, width: int) -> Iterator[Text]:
    if len(walk.draws) < 2:
        return
    about = "the same row at other visits" if walk.others else "every visit is the same"
    yield Text()
    yield Text.assemble(("other draws 其他抽样", "bold"), (f"   {about}", "dim"))
    for draw in walk.others:
        yield from _compact(f"visit {draw.visit}", draw, width)


def _compact(label: str, draw: Draw, width: int) -> Iterator[Text]:
    """What is seen, in running text, and what must be said. Raised letters say how a token came there."""
    yield from flow(label, _seen(draw), width)
    for asked in draw.asked:
        if not isinstance(asked, Saying):
            yield from flow("says", _said(asked), width)


def _seen(draw: Draw) -> Iterator[Atom]:
    turns = turns_of(draw)
    seen = zip(pieces(draw.inputs[-1]), draw.steps[-1].places, strict=True)
    for at, ((gap, token), place) in enumerate(seen):
        mark = MARKS[place.fate]
        yield Atom(gap, token + (turns[at].translate(_RAISED) if at in turns else mark.raised), mark.style)


def _said(asked: Answers | Script) -> Iterator[Atom]:
    """What must be said, as running text, span by span."""
    if isinstance(asked, Script):
        for (gap, token), one in zip(pieces([one.token for one in asked.tokens]), asked.tokens, strict=True):
            yield Atom(gap, token, MARKS[one.fate].style)
    elif asked.in_turn:
        for number, answer in enumerate(asked.answers):
            yield Atom(" → " if number else "", answer.says, "")
    else:
        for number, (_, group) in enumerate(groupby(asked.answers, lambda answer: answer.group)):
            yield Atom(" · " if number else "", spelled([answer.says for answer in group]), "")

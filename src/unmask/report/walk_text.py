"""A walk as text for a terminal of 80 columns or more.

What arrives: a `Walk`. What leaves: lines of rich text; without colour nothing is lost, because every mark is a letter.
What never happens here: finding out what happened. The walk knows; this file only writes it down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.text import Text

from unmask.asked import Answers, Asked, Saying, Script
from unmask.records import Layer
from unmask.report.labels import MARKS, Stage, pieces, span_of, spelled
from unmask.report.strip import Cell, Column, strip
from unmask.trace import Place
from unmask.walk import Draw, Sight, Token, Walk

_MARGIN = 9
_TERMS = {Layer.WORD: "词", Layer.PHRASE: "短语", Layer.ENTITY: "实体"}
_MOST_SHOWN = 24


def walk_lines(walk: Walk, width: int) -> Iterator[Text]:
    """The whole walk, stage by stage."""
    yield from _title(walk, width)
    yield from _heading(Stage.TEXT)
    yield from _wrapped("", "  ".join(walk.sentences), width)
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
    yield from _wrapped("", came_back, width)
    yield from _others(walk, width)


def summary_lines(walk: Walk, width: int) -> Iterator[Text]:
    """One draw of a walk in three lines: its name, what is seen, what must be said."""
    subject = walk.subject
    head = Text(subject.name.removeprefix("rule ").ljust(14), style="bold")
    head.append(f"{subject.says}", style="not bold").append(f"  {subject.paper.split(',')[0]}", style="dim not bold")
    yield head
    yield from _compact("sees", walk.draws[0], width)


def _title(walk: Walk, width: int) -> Iterator[Text]:
    subject = walk.subject
    yield Text.assemble((f"{subject.name} {subject.term}".rstrip(), "bold reverse"), f"  {subject.says}")
    yield Text(subject.paper, style="dim")


def _heading(stage: Stage, about: str = "") -> Iterator[Text]:
    english, chinese = stage.value
    yield Text()
    yield Text.assemble((f"{stage.number} {english} {chinese}", "bold"), (f"   {about}" if about else "", "dim"))


def _wrapped(label: str, text: str | Text, width: int, style: str = "") -> Iterator[Text]:
    """A paragraph beside its label, broken at the width."""
    body = Text(text, style=style) if isinstance(text, str) else text
    for number, line in enumerate(_broken(body, width - _MARGIN)):
        yield Text((label if number == 0 else "").rjust(_MARGIN - 1) + " ", style="dim").append_text(line)


def _broken(text: Text, width: int) -> list[Text]:
    from rich.console import Console

    return list(text.wrap(Console(width=width), width))


def _words(walk: Walk, width: int) -> Iterator[Text]:
    yield from _heading(Stage.WORDS, f"{len(walk.units[0][1])} words, found once, on the text")
    for layer, found in walk.units:
        if found:
            yield from _wrapped(_TERMS[layer], "│".join(found), width)


def _tokens(walk: Walk, width: int) -> Iterator[Text]:
    yield from _heading(Stage.TOKENS, f"{len(walk.tokens)} tokens")
    columns = (Column((Cell(t.text), Cell(str(t.id), "dim")), bar) for t, bar in _with_bars(walk.tokens))
    yield from strip(("token", "id"), columns, width, _MARGIN)
    yield from _wrapped("ids", f"of {walk.ground.about}", width, "dim")


def _with_bars(tokens: Sequence[Token]) -> Iterator[tuple[Token, bool]]:
    """Each token, and whether a word begins with it."""
    for before, token in zip((None, *tokens), tokens, strict=False):
        yield token, before is not None and before.word != token.word


def _example(walk: Walk, width: int) -> Iterator[Text]:
    rows = f", the first of {walk.rows} rows" if walk.rows > 1 else ""
    yield from _heading(Stage.EXAMPLE, f"{len(walk.row)} tokens with the special ones{rows}")
    pair = any(token.segment for token in walk.row)
    columns = []
    for place, (token, bar) in enumerate(_with_bars(walk.row)):
        cells = [Cell(token.text, "dim" if token.fixed else ""), Cell(str(place), "dim")]
        cells += [Cell("AB"[token.segment], "cyan" if token.segment else "")] if pair else []
        columns.append(Column(tuple(cells), bar))
    yield from strip(("token", "place", *(("segment",) if pair else ())), columns, width, _MARGIN)


def _selection(walk: Walk, draw: Draw, width: int) -> Iterator[Text]:
    yield from _heading(Stage.SELECTION, draw.about)
    yield from _wrapped("rule", walk.where, width)
    if walk.budget:
        yield from _wrapped("budget", walk.budget, width)
    for note in walk.notes:
        yield from _wrapped("note", note, width, "yellow")
    spans = [span for step in draw.steps for span in step.chosen]
    if spans:
        text = sum(not token.fixed for token in walk.row)
        taken = sum(len(span.origins) for span in spans)
        chosen = Text()
        for number, span in enumerate(spans, start=1):
            chosen.append(f"{number} ", "dim").append(_origin(walk, span.origins), "bold").append("   ")
        yield from _wrapped("chosen", chosen, width)
        yield from _wrapped("", f"{taken} of {text} text tokens", width, "dim")


def _origin(walk: Walk, origins: Sequence[int]) -> str:
    """A chosen span as it stood in the row, with its places."""
    if not origins:
        return "(nothing: a mask is put in)"
    return f"{spelled([walk.row[at].text for at in origins])} ({span_of(origins)})"


def _input(walk: Walk, draw: Draw, width: int) -> Iterator[Text]:
    yield from _heading(Stage.INPUT, walk.shows)
    for number, (step, tokens) in enumerate(zip(draw.steps, draw.inputs, strict=True), start=1):
        if len(draw.steps) > 1:
            yield from _wrapped(f"step {number}", type(step.part).__name__, width, "dim")
        same = len(tokens) == len(walk.row) and list(step.origins) != sorted(step.origins)
        before = [token.text for token in walk.row] if len(tokens) == len(walk.row) and not same else []
        labels = (*(("before",) if before else ()), "input", "mark")
        yield from strip(labels, _input_columns(step.places, tokens, before), width, _MARGIN)
    yield from _legend(draw, width)


def _input_columns(places: Sequence[Place], tokens: Sequence[str], before: Sequence[str]) -> Iterator[Column]:
    for at, (place, token) in enumerate(zip(places, tokens, strict=True)):
        mark = MARKS[place.fate]
        letter = f"{place.group or ''}{mark.letter}"
        cells = (Cell(token, mark.style), Cell(letter, mark.style))
        yield Column((Cell(before[at], "dim"), *cells) if before else cells)


def _legend(draw: Draw, width: int) -> Iterator[Text]:
    fates = [fate for fate in MARKS if MARKS[fate].letter and any(p.fate is fate for p in draw.steps[-1].places)]
    legend = Text()
    for fate in fates:
        mark = MARKS[fate]
        legend.append(mark.letter, mark.style).append(f" {mark.words} {mark.term}   ", "dim")
    if fates:
        yield from _wrapped("", legend, width)


def _asked(asked: Asked, width: int) -> Iterator[Text]:
    yield from _wrapped("", asked.how, width, "dim" if not isinstance(asked, Saying) else "")
    if isinstance(asked, Script):
        cells = (Cell(one.token, MARKS[one.fate].style) for one in asked.tokens)
        yield from strip(("writes",), (Column((cell,)) for cell in cells), width, _MARGIN)
    elif isinstance(asked, Answers):
        yield from strip(*_answer_strip(asked), width, _MARGIN)


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
    yield from _wrapped("", walk.sight, width)
    for stream in walk.streams:
        yield from _grid(stream, walk.row)


def _grid(stream: Sight, row: Sequence[Token]) -> Iterator[Text]:
    """A line for each position that reads; positions that see the same share one."""
    count = min(len(row), _MOST_SHOWN)
    some = f" (the first {count} of {len(row)} places)" if count < len(row) else ""
    yield Text(f"{'':{_MARGIN}}{stream.name}: {stream.about}{some}", style="dim")
    yield Text(" " * 16 + "".join(f"{place:3}" for place in range(count)), style="dim")
    for places in _alike(stream.grid[:count, :count]):
        name = f"{places[0]} {row[places[0]].text}" if len(places) == 1 else f"the other {len(places)}"
        line = Text(" " * (_MARGIN) + _fitted(name, 7), style="dim")
        for seen in stream.grid[places[0], :count]:
            line.append("  ■" if seen else "  ·", style="bold green not dim" if seen else "dim")
        yield line


def _alike(grid: np.ndarray) -> list[list[int]]:
    """Places that see the same, in the order of their first; single ones first, the large group last."""
    groups: dict[bytes, list[int]] = {}
    for place, line in enumerate(grid):
        groups.setdefault(line.tobytes(), []).append(place)
    return sorted(groups.values(), key=lambda group: (len(group) > 1, group[0]))


def _fitted(text: str, width: int) -> str:
    from rich.cells import set_cell_size

    return set_cell_size(text, width)


def _others(walk: Walk, width: int) -> Iterator[Text]:
    if len(walk.draws) < 2:
        return
    yield Text()
    yield Text.assemble(("other draws 其他抽样", "bold"), ("   the same row at other visits", "dim"))
    for draw in walk.draws[1:]:
        yield from _compact(f"visit {draw.visit}", draw, width)


def _compact(label: str, draw: Draw, width: int) -> Iterator[Text]:
    """What is seen, in running text, and what must be said."""
    seen, step = Text(), draw.steps[-1]
    for (gap, token), place in zip(pieces(draw.inputs[-1]), step.places, strict=True):
        mark = MARKS[place.fate]
        seen.append(gap).append(token + mark.raised, mark.style)
    yield from _wrapped(label, seen, width)
    for asked in draw.asked:
        if not isinstance(asked, Saying):
            yield from _wrapped("says", _said(asked), width)


def _said(asked: Answers | Script) -> Text:
    """What must be said, as running text, span by span."""
    if isinstance(asked, Script):
        return _written(asked)
    if asked.in_turn:
        return Text(" → ".join(one.says for one in asked.answers))
    groups: dict[int, list[str]] = {}
    for one in asked.answers:
        groups.setdefault(one.group, []).append(one.says)
    return Text(" · ".join(spelled(group) for group in groups.values()))


def _written(script: Script) -> Text:
    line = Text()
    for (gap, token), one in zip(pieces([one.token for one in script.tokens]), script.tokens, strict=True):
        line.append(gap).append(token, MARKS[one.fate].style)
    return line

"""A walk as text for a terminal of at least 80 columns. Marks are letters, so that colors are not needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import set_cell_size
from rich.text import Text

from unmask.config.attention_pattern import FULL
from unmask.core.records import UnitKind
from unmask.reports.text.layout import (
    MARGIN,
    TableCell,
    TextPiece,
    TokenColumn,
    break_at_spaces,
    token_table,
    wrap_pieces,
    wrap_text,
)
from unmask.reports.text.walk_labels import FATE_MARKS, WalkStage, join_tokens, position_range, spaced_tokens
from unmask.walks.describe import SEGMENT_LETTERS, describe_selection, pluralize
from unmask.walks.targets import DecoderScript, OtherTarget, PredictedTokens, ReadableTarget
from unmask.walks.trace import InputPosition, TraceStep
from unmask.walks.walk import AttentionGrid, CorruptedRow, Walk, WalkToken, prediction_turns, raised_rates_note

_UNITS = {UnitKind.WORD: "words", UnitKind.PHRASE: "phrases", UnitKind.ENTITY: "entities"}
_MAX_SHOWN = 20
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def walk_lines(walk: Walk, width: int) -> Iterator[Text]:
    """The whole walk, stage by stage."""
    yield from _title(walk, width)
    yield from _heading(WalkStage.TEXT)
    yield from wrap_text("", "  ".join(walk.sentences), width)
    yield from _words(walk, width)
    yield from _tokens(walk, width)
    yield from _example(walk, width)
    draw = walk.corrupted_rows[0]
    yield from _selection(walk, draw, width)
    yield from _input(walk, draw, width)
    yield from _heading(WalkStage.TARGETS)
    for asked in draw.targets:
        yield from _target(asked, width)
    yield from _attention(walk, width)
    yield from _heading(WalkStage.RESTORED)
    came_back = "yes: from input and targets alone, all tokens come back exactly" if draw.is_restored else "NO"
    yield from wrap_text("", came_back, width)
    yield from _further_rows(walk, width)


def summary_lines(walks: Sequence[Walk], width: int) -> Iterator[Text]:
    """Several walks, one corrupted row each: name, input and targets."""
    for walk in walks:
        subject = walk.target
        head = Text.assemble((subject.name.removeprefix("rule ").ljust(14), "bold"), subject.summary)
        yield head.append(f"  {subject.paper.split(',')[0]}", style="dim")
        yield from _compact("sees", walk.corrupted_rows[0], width)
    yield Text()
    legend = [f"{mark.superscript} {mark.description}" for mark in FATE_MARKS.values() if mark.superscript]
    yield from break_at_spaces(Text("   ".join((*legend, "¹ ² ³ said in this order")), style="dim"), width)
    if raised_rates_note(walks):
        yield from break_at_spaces(Text(raised_rates_note(walks), style="yellow"), width)
    yield Text("Every stage of one of them: unmask walk --rule NAME", style="dim")


def _title(walk: Walk, width: int) -> Iterator[Text]:
    subject = walk.target
    yield Text.assemble((f"{subject.name} {subject.term}".rstrip(), "bold reverse"), f"  {subject.summary}")
    yield from break_at_spaces(Text(subject.paper, style="dim"), width)
    if subject.part_note:
        yield from break_at_spaces(Text(subject.part_note, style="yellow"), width)


def _heading(stage: WalkStage, about: str = "") -> Iterator[Text]:
    english, chinese = stage.value
    yield Text()
    yield Text.assemble((f"{stage.number} {english} {chinese}", "bold"), (f"   {about}" if about else "", "dim"))


def _words(walk: Walk, width: int) -> Iterator[Text]:
    yield from _heading(WalkStage.WORDS, f"{pluralize(len(walk.units[0][1]), 'word')}, found once, on the text")
    for layer, found in walk.units:
        if found:
            yield from wrap_text(_UNITS[layer], "|".join(found), width)
    if walk.context.segmentation_note:
        yield from wrap_text("units", walk.context.segmentation_note, width, "dim")


def _tokens(walk: Walk, width: int) -> Iterator[Text]:
    yield from _heading(WalkStage.TOKENS, pluralize(len(walk.tokens), "token"))
    columns = (TokenColumn((TableCell(t.text), TableCell(str(t.id), "dim")), bar) for t, bar in _with_bars(walk.tokens))
    yield from token_table(("token", "id"), columns, width, MARGIN)
    yield from wrap_text("ids", f"of {walk.context.vocab_source}", width, "dim")


def _with_bars(tokens: Sequence[WalkToken]) -> Iterator[tuple[WalkToken, bool]]:
    """Each token, and whether a word begins with it."""
    for before, token in zip((None, *tokens), tokens, strict=False):
        yield token, before is not None and before.word != token.word


def _example(walk: Walk, width: int) -> Iterator[Text]:
    rows = f", the first of {walk.num_rows} rows" if walk.num_rows > 1 else ""
    yield from _heading(WalkStage.EXAMPLE, f"{pluralize(len(walk.row), 'token')} with the special ones{rows}")
    pair = any(token.segment for token in walk.row)
    columns = []
    for place, (token, bar) in enumerate(_with_bars(walk.row)):
        cells = [TableCell(token.text, "dim" if token.protected else ""), TableCell(str(place), "dim")]
        cells += [TableCell(SEGMENT_LETTERS[token.segment], "cyan" if token.segment else "")] if pair else []
        columns.append(TokenColumn(tuple(cells), bar))
    yield from token_table(("token", "place", *(("segment",) if pair else ())), columns, width, MARGIN)
    if walk.other_text_note:
        yield from wrap_text("note", walk.other_text_note, width, "yellow")


def _selection(walk: Walk, draw: CorruptedRow, width: int) -> Iterator[Text]:
    yield from _heading(WalkStage.SELECTION, draw.description)
    yield from wrap_text("rule", walk.selection, width)
    if walk.budget:
        yield from wrap_text("budget", walk.budget, width)
    for note in filter(None, (walk.raised_rate_note, *walk.notes)):
        yield from wrap_text("note", note, width, "yellow")
    for step in draw.steps:
        if step.selected_spans:
            yield from wrap_pieces("chosen", _selected_spans(walk, step), width)


def _selected_spans(walk: Walk, step: TraceStep) -> Iterator[TextPiece]:
    """The numbered spans that a step selected, and their number of tokens."""
    for number, span in enumerate(step.selected_spans, start=1):
        yield TextPiece("   " if number > 1 else "", f"{number} {_origin(walk, span.origins)}", "bold")
    text = sum(not token.protected for token in walk.row)
    yield TextPiece(
        "   ", f"{sum(len(span.origins) for span in step.selected_spans)} of {pluralize(text, 'text token')}", "dim"
    )


def _origin(walk: Walk, origins: Sequence[int]) -> str:
    """A selected span of the original row, with its positions."""
    if not origins:
        return "(nothing: a mask is put in)"
    return f"{join_tokens([walk.row[at].text for at in origins])} ({position_range(origins)})"


def _input(walk: Walk, draw: CorruptedRow, width: int) -> Iterator[Text]:
    yield from _heading(WalkStage.INPUT)
    yield from wrap_text("shown", walk.replacement, width)
    for number, (step, tokens) in enumerate(zip(draw.steps, draw.inputs, strict=True), start=1):
        if len(draw.steps) > 1:
            yield from wrap_text(f"step {number}", describe_selection(step.corruption), width, "dim")
        row = tuple(token.text for token in walk.row)
        before = row if step.is_in_place and tokens != row else ()
        yield from token_table(*_input_table(step.positions, tokens, before, prediction_turns(draw)), width, MARGIN)
    yield from _legend(draw, width)


def _input_table(
    places: Sequence[InputPosition], tokens: Sequence[str], before: Sequence[str], turns: dict[int, str]
) -> tuple[tuple[str, ...], list[TokenColumn]]:
    """The original token if known, the token of the input, and the mark of its fate."""
    marked = any(FATE_MARKS[place.fate].letter for place in places)
    columns = []
    for at, (place, token) in enumerate(zip(places, tokens, strict=True)):
        mark = FATE_MARKS[place.fate]
        cells = [TableCell(before[at], "dim")] if before else []
        cells.append(TableCell(token, mark.style))
        letter = mark.letter + turns[at] if at in turns else f"{place.group or ''}{mark.letter}"
        cells += [TableCell(letter, mark.style)] if marked else []
        columns.append(TokenColumn(tuple(cells)))
    return (*(("before",) if before else ()), "input", *(("mark",) if marked else ())), columns


def _legend(draw: CorruptedRow, width: int) -> Iterator[Text]:
    fates = [
        fate for fate in FATE_MARKS if FATE_MARKS[fate].letter and any(p.fate is fate for p in draw.steps[-1].positions)
    ]
    legend = Text()
    for fate in fates:
        mark = FATE_MARKS[fate]
        legend.append(mark.letter, mark.style).append(f" {mark.description} {mark.term}   ", "dim")
    if fates:
        yield from wrap_text("", legend, width)


def _target(asked: ReadableTarget, width: int) -> Iterator[Text]:
    yield from wrap_text("", asked.description, width, "dim" if not isinstance(asked, OtherTarget) else "")
    if isinstance(asked, DecoderScript):
        cells = (TableCell(one.token, FATE_MARKS[one.fate].style) for one in asked.tokens)
        yield from token_table(("writes",), (TokenColumn((cell,)) for cell in cells), width, MARGIN)
    elif isinstance(asked, PredictedTokens):
        yield from token_table(*_predicted_table(asked), width, MARGIN)


def _predicted_table(asked: PredictedTokens) -> tuple[tuple[str, ...], list[TokenColumn]]:
    """Positions with input and target; in a drawn order, the turn instead of the input."""
    columns = []
    for turn, one in enumerate(asked.tokens, start=1):
        style = FATE_MARKS[one.fate].style
        first = TableCell(str(turn)) if asked.is_sequential else TableCell(one.input_token, style)
        columns.append(TokenColumn((first, TableCell(one.target_token, "bold"), TableCell(str(one.position), "dim"))))
    return ("turn" if asked.is_sequential else "sees", "says", "place"), columns


def _attention(walk: Walk, width: int) -> Iterator[Text]:
    yield from _heading(WalkStage.SIGHT)
    yield from wrap_text("", walk.attention, width)
    for stream in walk.streams if walk.target.task.attention != FULL else ():
        yield from _grid(stream, walk.corrupted_rows[0].inputs[-1], width)


def _grid(stream: AttentionGrid, tokens: Sequence[str], width: int) -> Iterator[Text]:
    """A line per query, or per group of queries with the same keys."""
    count = min(len(tokens), _MAX_SHOWN)
    some = f"; the first {count} of {len(tokens)} places" if count < len(tokens) else ""
    yield from wrap_text("", f"{stream.name}: {stream.description}{some}", width, "dim")
    yield Text(" " * (MARGIN + 8) + "".join(f"{place:3}" for place in range(count)), style="dim")
    for places in stream.query_groups:
        if places[0] < count:
            name = f"{places[0]} {tokens[places[0]]}" if len(places) == 1 else "others"
            line = Text(" " * MARGIN).append(set_cell_size(name, 8), "dim")
            for seen in stream.grid[places[0], :count]:
                line.append("  #" if seen else "  .", "green" if seen else "dim")
            yield line


def _further_rows(walk: Walk, width: int) -> Iterator[Text]:
    if len(walk.corrupted_rows) < 2:
        return
    about = "the same row at other visits" if walk.further_rows else "every visit is the same"
    yield Text()
    yield Text.assemble(("other draws 其他抽样", "bold"), (f"   {about}", "dim"))
    for draw in walk.further_rows:
        yield from _compact(f"visit {draw.visit}", draw, width)


def _compact(label: str, draw: CorruptedRow, width: int) -> Iterator[Text]:
    """Input and targets as running text; superscripts mark the fate of a token."""
    yield from wrap_pieces(label, _input_text(draw), width)
    for asked in draw.targets:
        if not isinstance(asked, OtherTarget):
            yield from wrap_pieces("says", _target_text(asked), width)


def _input_text(draw: CorruptedRow) -> Iterator[TextPiece]:
    turns = prediction_turns(draw)
    seen = zip(spaced_tokens(draw.inputs[-1]), draw.steps[-1].positions, strict=True)
    for at, ((gap, token), place) in enumerate(seen):
        mark = FATE_MARKS[place.fate]
        yield TextPiece(
            gap, token + (turns[at].translate(_SUPERSCRIPTS) if at in turns else mark.superscript), mark.style
        )


def _target_text(asked: PredictedTokens | DecoderScript) -> Iterator[TextPiece]:
    """The targets as running text, span by span."""
    if isinstance(asked, DecoderScript):
        for (gap, token), one in zip(spaced_tokens([one.token for one in asked.tokens]), asked.tokens, strict=True):
            yield TextPiece(gap, token, FATE_MARKS[one.fate].style)
    elif asked.is_sequential:
        for number, answer in enumerate(asked.tokens):
            yield TextPiece(" → " if number else "", answer.target_token, "")
    else:
        for number, (_, group) in enumerate(groupby(asked.tokens, lambda answer: answer.group)):
            yield TextPiece(" · " if number else "", join_tokens([answer.target_token for answer in group]), "")

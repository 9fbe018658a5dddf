"""`walk`: what a member or preset does to one sentence, stage by stage, in the terminal or as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unmask.core.records import Document
    from unmask.walks.context import WalkContext
    from unmask.walks.walk import Walk, WalkTarget

SAMPLE = "使用语言模型来预测下一个词的概率"
_WIDEST = 100
_DRAWS = 4
"""The draw that is walked, and three more in short."""


def walk(
    member: Annotated[str | None, typer.Argument(help="A member, or your_file.py:name.")] = None,
    rule: Annotated[str, typer.Option(help="A bare rule instead of a member: token, word, span, t5, ...")] = "",
    text: Annotated[str, typer.Option(help="The text to walk; of a dialogue, one turn a line.")] = SAMPLE,
    other: Annotated[str, typer.Option(help="Text of another document, for pairs; else a sample sentence.")] = "",
    task: Annotated[str, typer.Option(help="Another task of the member than its first.")] = "",
    phrase: Annotated[list[str] | None, typer.Option(help="A phrase of the text (again for more).")] = None,
    entity: Annotated[list[str] | None, typer.Option(help="An entity of the text (again for more).")] = None,
    data: Annotated[Path | None, typer.Option(help="A prepared corpus: its vocabulary, units, similar words.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of all draws.")] = 0,
    visit: Annotated[int, typer.Option(min=0, help="Which visit of the row to walk: masks may be drawn anew.")] = 0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Keep a rule's rate even on a text too short to show it.")
    ] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a value first (and keep the rate).")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file instead.")] = None,
) -> None:
    """Show every stage of one sentence: words, tokens, selection, input, targets, who sees whom.

    Without a member and without a rule, all rules are shown side by side.

    Examples:

        unmask walk macbert --text "使用语言模型来预测下一个词的概率"

        unmask walk --rule span --html walk.html

        unmask walk --rule phrase --phrase 语言模型

        unmask walk ernie --task phrase-dialogue

        unmask walk --rule token --set corruption.select.rate=0.3 --visit 7
    """
    from unmask.walks.context import WalkContext, annotate, as_dialogue
    from unmask.walks.toy_vocab import DIALOGUE, other_toy_dialogue, other_toy_document

    subjects = _subjects(member or "", rule, set_ or [], task)
    talks = subjects[0].is_dialogue
    text = DIALOGUE if talks and text == SAMPLE else text
    second = other or (other_toy_dialogue(text) if talks else other_toy_document(text))
    ground = WalkContext.corpus(data) if data else WalkContext.toy([text, second], subjects[0].spelling)
    layers = frozenset(layer for subject in subjects for layer in subject.task.required_units)
    first = annotate(
        as_dialogue(text, "--text") if talks else text, layers, phrase or [], entity or [], ground.corpus_units
    )
    documents = (
        first,
        annotate(as_dialogue(second, "--other") if talks else second, frozenset(), corpus_units=ground.corpus_units),
    )
    _print_walks(_walks(subjects, documents, ground, seed, range(visit, visit + _DRAWS), exact or bool(set_)), html)


def _walks(
    subjects: list[WalkTarget],
    documents: tuple[Document, Document],
    ground: WalkContext,
    seed: int,
    visits: range,
    exact: bool,
) -> list[Walk]:
    """A walk of each subject. Of several, those that cannot work on this ground are named and left out."""
    from unmask.cli.ui.console import print_line
    from unmask.core.errors import RecipeError
    from unmask.walks.walk import walk as take

    walks = []
    for subject in subjects:
        try:
            walks.append(take(subject, documents[0], ground, documents[1], seed, visits, exact))
        except RecipeError as error:
            if len(subjects) == 1:
                raise
            print_line(f"{subject.name} is left out: {error}", stderr=True)
    return walks


def _subjects(member: str, rule: str, changes: list[str], task: str) -> list[WalkTarget]:
    """The member, or the rule, or all rules."""
    from unmask.core.errors import RecipeError
    from unmask.members import apply_changes, resolve_member
    from unmask.tasks.presets import find_preset, presets
    from unmask.walks.walk import WalkTarget

    if member and rule:
        raise RecipeError(f"Walk either the member {member} or the bare rule {rule}, not both at once.")
    if member:
        return [WalkTarget.of_member(resolve_member(member, changes), task)]
    if task:
        raise RecipeError("--task names a task of a member, but no member was named. Name one, or leave --task out.")
    if not rule and changes:
        raise RecipeError("--set changes one member or one rule: name it, for instance with --rule token.")
    found = [find_preset(rule)] if rule else presets()
    return [WalkTarget.of_rule(one, apply_changes(one.task, changes, "corruption.select.rate=0.3")) for one in found]


def _print_walks(walks: list[Walk], html: Path | None) -> None:
    from unmask.cli.ui.console import console, print_line

    if html is not None:
        from unmask.reports.pages.walk import write_page

        write_page(walks, html)
        print_line(f"{html} is written; open it in any browser.")
        return
    from unmask.reports.text.walk import summary_lines, walk_lines

    screen = console()
    width = min(screen.width, _WIDEST)
    lines = walk_lines(walks[0], width) if len(walks) == 1 else summary_lines(walks, width)
    screen.print(*lines, sep="\n", soft_wrap=True)

"""`audit`: measures on a prepared corpus what the rules of a member or preset do, and compares it with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unmask.audits.finding import Findings, Section
    from unmask.data.corpus.corpus import Corpus
    from unmask.tasks.recipe import Recipe, Task

_EVERY = 1 << 62


def audit(
    data: Annotated[Path, typer.Option(help="A prepared folder.")],
    member: Annotated[str, typer.Argument(help="A member, or your_file.py:name.", show_default=False)] = "",
    rule: Annotated[str, typer.Option(help="Audit a bare rule instead of a member: word, span, t5, ...")] = "",
    rows: Annotated[int, typer.Option(min=0, help="Rows to look at for each task and length; 0: all.")] = 2000,
    max_length: Annotated[int | None, typer.Option(min=8, help="Tokens in a row, instead of the stages' own.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the draws.")] = 0,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a value first: PATH=VALUE.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare all files with their digests first.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure on your corpus what a member's rules do, and hold it against the rules. Exit code 1: a rule is broken.

    Examples:

        unmask audit macbert --data data/

        unmask audit wwm --data data/ --max-length 256 --rows 0

        unmask audit --rule span --data data/ --json
    """
    from unmask.audits.audit import audit as measure
    from unmask.core.rng import Key

    subject = _subject(member, rule, set_ or [])
    corpus = _corpus(data, verify)
    lengths = () if max_length is None else (max_length,)
    findings = measure(subject, corpus, Key.of(seed), rows or _EVERY, lengths)
    _print_note(subject, data, to_stderr=json)
    if json:
        _print_json(findings)
    else:
        _print_tables(findings, data)
    if not findings.holds:
        raise typer.Exit(1)


def _subject(member: str, rule: str, changes: list[str]) -> Recipe | Task:
    """What was named: a member with its changes, or a bare rule."""
    from unmask.core.errors import RecipeError
    from unmask.members import resolve_member

    if bool(member) == bool(rule):
        found = f"both '{member}' and --rule {rule}" if member else "neither"
        raise RecipeError(
            f"audit needs a member or --rule NAME, found {found}. For example: unmask audit bert --data D"
        )
    if rule and changes:
        raise RecipeError(
            "--set changes a member's recipe, but a bare rule was named. Name a member, or leave --set out."
        )
    if member:
        return resolve_member(member, changes)
    from unmask.tasks.presets import preset as bare

    return bare(rule)


def _corpus(folder: Path, verify: bool) -> Corpus:
    """The corpus, verified against its digests if requested."""
    from unmask.core.errors import CorpusError
    from unmask.data.corpus.corpus import Corpus

    corpus = Corpus.open(folder)
    if verify:
        try:
            corpus.verify()
        except OSError as error:
            raise CorpusError(f"The corpus in {folder} is damaged ({error}). Prepare the corpus again.") from error
    return corpus


def _print_note(subject: Recipe | Task, folder: Path, to_stderr: bool) -> None:
    """Note that the corpus has another kind of vocabulary than the member; on standard error if the output is JSON."""
    from unmask.audits.audit import vocabulary_mismatch
    from unmask.cli.ui.console import print_line
    from unmask.tasks.recipe import Recipe

    note = vocabulary_mismatch(subject, folder) if isinstance(subject, Recipe) else ""
    if note:
        print_line(f"note: {note}\n", to_stderr)


def _print_json(findings: Findings) -> None:
    import json
    import sys

    from unmask.audits.render import to_json_data

    sys.stdout.write(json.dumps(to_json_data(findings), indent=2, ensure_ascii=False) + "\n")


def _print_tables(findings: Findings, folder: Path) -> None:
    from rich.text import Text

    from unmask.audits.render import heading, histogram_lines, verdict_line
    from unmask.cli.ui.console import console, print_line

    screen = console()
    for section in findings.sections:
        screen.print(Text(heading(section), style="bold"))
        _print_findings(section)
        for histogram in section.histograms:
            screen.print(Text(f"\n{histogram.name}: measured #, law |", style="bold"))
            for line in histogram_lines(histogram):
                screen.print(Text(line), no_wrap=True)
        screen.print()
    for advice in dict.fromkeys(finding.advice for finding in findings.broken if finding.advice):
        print_line(advice.replace("FOLDER", str(folder)))
    screen.print(Text(verdict_line(findings), style="green" if findings.holds else "bold red"))


def _print_findings(section: Section) -> None:
    from rich.table import Table

    from unmask.audits.finding import Verdict
    from unmask.audits.render import format_expected, format_number
    from unmask.cli.ui.console import console

    colour = {Verdict.HOLDS: "green", Verdict.BROKEN: "bold red", Verdict.REPORTED: "dim", Verdict.TOO_FEW: "yellow"}
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    table.add_column("measured", justify="right")
    table.add_column("rule", justify="right")
    table.add_column("verdict")
    for finding in section.findings:
        said = f"[{colour[finding.verdict]}]{finding.verdict}[/]"
        table.add_row(finding.name, format_number(finding.measured, finding.unit), format_expected(finding), said)
    console().print(table)

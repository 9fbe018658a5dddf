"""How commands speak: text as it is, facts in columns, paths that can be copied."""

from pathlib import Path

from unmask.cli.ui.console import print_facts, print_line, print_path
from unmask.cli.ui.progress import progress


def test_a_sentence_is_printed_as_it_stands(capsys):
    long = "[bold]runs/[a][/bold] " + "word " * 40 + "end"
    print_line(long)
    print_line("note", stderr=True)
    printed = capsys.readouterr()
    assert printed.out == f"{long}\n"
    assert printed.err == "note\n"


def test_facts_stand_below_each_other_and_a_path_is_never_broken(capsys):
    path = Path("/", *(["a folder of some length"] * 6))
    print_facts([("steps", "1,200"), ("parameters", "4,000,000")])
    print_path("run", path)
    assert capsys.readouterr().out.splitlines() == [
        "steps       1,200    ",
        "parameters  4,000,000",
        f"run         {path}",
    ]


def test_a_title_of_progress_is_no_markup(capsys):
    with progress("tuning [red]runs[/red]", 1.0):
        pass
    first, last = capsys.readouterr().err.splitlines()
    assert first == "tuning [red]runs[/red] ..."
    assert last.startswith("tuning [red]runs[/red]: done in ")

"""`report`: one HTML page about a run, or comparing several runs; see `unmask/reports/`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders: one, or several to compare.", metavar="RUN...")],
    out: Annotated[
        Path | None, typer.Option(help="The file to write; else report.html in the run's folder (several: here).")
    ] = None,
) -> None:
    """Write one page about a run: curves, speed, filled masks, the recipe, the audit. Several runs are compared.

    Examples:

        unmask report runs/bert

        unmask report runs/bert runs/wwm --out compared.html
    """
    from unmask.cli.ui.console import print_line
    from unmask.reports.pages.run.page import write_report
    from unmask.reports.read_run import read_run

    records = [read_run(folder) for folder in dict.fromkeys(runs)]
    path = out or (records[0].folder if len(records) == 1 else Path()) / "report.html"
    write_report(records, path)
    print_line(f"{path} is written; open it in any browser.")

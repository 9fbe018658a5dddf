"""The frame of a page: one file with its style inside.

What arrives: a title, a body, the names of style sheets and scripts that lie beside this module. What leaves: HTML.
What never happens here: a request. Everything that a page needs is written into it.
"""

from __future__ import annotations

from importlib.resources import files

from unmask.reports.html.elements import Html, text


def page(title: str, body: Html, styles: tuple[str, ...], script: str = "") -> str:
    """The whole document. A script, if there is one, runs last and must not be needed."""
    style = "".join(_read_asset(name) for name in styles)
    code = f"<script>\n{_read_asset(script)}</script>\n" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n{code}</body>\n</html>\n"
    )


def _read_asset(name: str) -> str:
    return files("unmask.reports").joinpath(name).read_text(encoding="utf-8")

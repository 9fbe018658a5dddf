"""HTML pages from templates: each page is one file with its style sheets, charts and script inside.

Values are escaped unless they are `Markup`. Templates are in `templates/`, style sheets and the script in this folder.
jinja2 is installed with torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unmask.reports.text.number_format import (
    format_count,
    format_duration,
    format_mean_std,
    format_number,
    format_percent,
)

EMPTY = Markup("")


def join(parts: Iterable[Markup]) -> Markup:
    """Markup without anything between the parts."""
    return EMPTY.join(parts)


def render(template: str, values: Mapping[str, object]) -> Markup:
    """A template with these values."""
    return Markup(_environment().get_template(template).render(values))


def render_page(
    template: str, title: str, values: Mapping[str, object], styles: Sequence[str], script: str = ""
) -> str:
    """A whole document. The script, if there is one, runs last; the page is complete without it."""
    style = Markup("".join(_read_asset(name) for name in styles))
    code = Markup(_read_asset(script)) if script else EMPTY
    return str(render(template, {**values, "title": title, "style": style, "script": code}))


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("unmask.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "count": format_count,
        "duration": format_duration,
        "number": format_number,
        "percent": format_percent,
        "mean_std": format_mean_std,
    }
    return made


def _read_asset(name: str) -> str:
    return files("unmask.reports").joinpath(name).read_text(encoding="utf-8")

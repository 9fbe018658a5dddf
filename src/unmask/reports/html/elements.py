"""HTML that cannot be broken by what a text holds.

What arrives: text and markup, as two types. What leaves: markup.
What never happens here: text that enters a page without being escaped. Only `text` turns one into the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

Html = NewType("Html", str)
"""Markup that is ready for a page."""

EMPTY = Html("")


def text(value: object) -> Html:
    """A value as text."""
    return Html(escape(str(value)))


def tag(name: str, css: str, *children: Html, title: str = "") -> Html:
    """An element with a class, and with a hint that shows when one points at it."""
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in (("class", css), ("title", title)) if value)
    return Html(f"<{name}{attributes}>{''.join(children)}</{name}>")


def table(columns: Sequence[str], rows: Iterable[Iterable[Html]]) -> Html:
    """A table of finished cells, in a frame that scrolls where the page is too narrow."""
    head = tag("tr", "", *(tag("th", "", text(name)) for name in columns))
    body = (tag("tr", "", *cells) for cells in rows)
    return tag("div", "wide", tag("table", "", tag("thead", "", head), tag("tbody", "", *body)))


def span(css: str, value: object) -> Html:
    """Text in a span with a class."""
    return tag("span", css, text(value))

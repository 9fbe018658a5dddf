"""A hook of mkdocs: links to files outside `docs/` become plain text, because the site does not hold those files."""

from __future__ import annotations

import posixpath
import re


def on_page_markdown(markdown: str, *, page: object, **_: object) -> str:
    """Replace `[text](path)` by its text where the path leaves the documentation folder."""
    folder = posixpath.dirname(page.file.src_uri)  # type: ignore[attr-defined]

    def shown(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        if re.match(r"[a-z]+:", target) or not target:
            return match[0]
        return match[1] if posixpath.normpath(posixpath.join(folder, target)).startswith("..") else match[0]

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", shown, markdown)

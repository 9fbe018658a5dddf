"""What every member does to two short documents, and the fingerprint of every member, are what they were."""

from __future__ import annotations

import json
from functools import cache

import pytest
from golden_rows import FINGERPRINTS, HERE, Subject, fingerprints, ground, snapshot, subjects

from unmask.data.corpus.corpus import Corpus
from unmask.data.tokenize.tokenizer import Tokenizer

RENEW = "If this is meant, write the golden files anew with `python tests/golden/renew.py` and read the difference."
SUBJECTS = tuple(subjects())


@cache
def cached_ground() -> tuple[Tokenizer, Corpus]:
    return ground()


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.file)
def test_the_first_rows_of_a_member_are_golden(subject: Subject) -> None:
    path = HERE / subject.file
    assert path.exists(), f"{path.name} is missing: {subject.title} is new. {RENEW}"
    assert snapshot(subject, *cached_ground()) == path.read_text(encoding="utf-8"), f"{subject.title} changed. {RENEW}"


def test_no_golden_file_is_left_without_a_member() -> None:
    assert {path.name for path in HERE.glob("*.txt")} <= {subject.file for subject in SUBJECTS}, RENEW


def test_fingerprints_are_golden() -> None:
    golden = json.loads(FINGERPRINTS.read_text(encoding="utf-8"))
    now = fingerprints()
    changed = sorted(name for name in golden.keys() | now.keys() if golden.get(name) != now.get(name))
    assert not changed, (
        f"The recipes of {', '.join(changed)} are not what they were: checkpoints and plans that name the old "
        f"fingerprint no longer fit. {RENEW}"
    )

"""Every page of reports is what it was: its elements, its classes and its text."""

from __future__ import annotations

import pytest
from pages import GOLDEN, outlines

NAMES = ("run", "runs", "compare", "landscape", "suite", "walk", "walks")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return outlines(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_golden(name: str, found: dict[str, str]) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert found[name].splitlines() == golden.splitlines(), "If this is meant: python tests/golden/renew.py"
    assert sorted(found) == sorted(NAMES)

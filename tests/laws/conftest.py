"""The small vocabularies are trained once for all laws, the large corpus is made once."""

from __future__ import annotations

import pytest
from law_corpus import invented
from law_texts import SPECS, Ground

from unmask.data.corpus.corpus import Corpus


@pytest.fixture(scope="session")
def grounds() -> dict[str, Ground]:
    return {name: Ground.of(spec) for name, spec in SPECS.items()}


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return invented(documents=400)

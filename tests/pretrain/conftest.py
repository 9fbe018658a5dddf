"""The `pretrain` command from outside, on a little real text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from pretrain_runs import Server, end_of, prepared, words

from unmask.data.text.sample_corpora import peoples_daily


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """Some dozen articles, prepared."""
    folder = tmp_path_factory.mktemp("corpus")
    articles = [document.text for document in peoples_daily()]
    sizes = accumulate(map(len, articles))
    some = [text for text, size in zip(articles, sizes, strict=True) if size < 20_000]
    return prepared(server, folder, "\n\n".join(some))


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, server: Server, data: Path) -> Path:
    """A small run that came to its end undisturbed. No test may change it."""
    out = tmp_path_factory.mktemp("finished") / "run"
    ended = server.run(*words(data, out))
    assert ended.code == 0, ended.said
    assert end_of(out)
    return out

"""One process at a time in a folder: where there can be no folder, that is said."""

import pytest

from unmask.core.errors import InputError
from unmask.core.io.folder_lock import folder_lock


def test_where_no_folder_can_be(monkeypatch, tmp_path):
    def refuse(self, **_):
        raise FileNotFoundError(2, "No such file or directory", str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with (
        pytest.raises(InputError, match=f"There can be no folder {tmp_path}/x"),
        folder_lock(tmp_path / "x", "working in"),
    ):
        pass

"""Where a corpus is written: never over something else, never half, and the same wherever it lies."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from prepare_runs import Unmask, content

from unmask.core.errors import CorpusError
from unmask.data.corpus.corpus import Corpus

TEXT = "".join(f"第{number}天，我们去公园散步，天气很好。\n\n" for number in range(200))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "walks.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, tokenizer: Path, unmask: Unmask) -> Path:
    """A folder with `walks.txt`, the corpus of it in `data`, and other files."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "walks.txt").write_text(TEXT, encoding="utf-8")
    (folder / "other.txt").write_text("别的文档。", encoding="utf-8")
    (folder / "longer").mkdir()
    (folder / "longer" / "walks.txt").write_text(TEXT * 2, encoding="utf-8")
    ended = unmask("prepare", folder / "walks.txt", "--tokenizer", tokenizer, "--out", folder / "data", "-j", 1)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def expected(finished: Path) -> dict[str, bytes]:
    """The corpus of `TEXT`."""
    return content(finished / "data")


def test_a_finished_corpus_is_left_alone(
    unmask: Unmask, text: Path, tokenizer: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "data"
    first = unmask("prepare", text, "--tokenizer", tokenizer, "--out", out)
    # The second time with a relative path, another number of processes, and the file named twice.
    again = unmask("prepare", text.name, text, "--tokenizer", tokenizer, "--out", "data", "-j", 1, cwd=tmp_path)
    assert (first.returncode, again.returncode) == (0, 0)
    assert "data is prepared already" in again.stderr
    said, again_said = (ended.stdout.partition("corpus ")[0].split() for ended in (first, again))
    assert said == again_said
    assert content(out) == expected


def test_progress_is_plain_lines_when_piped(unmask: Unmask, text: Path, tokenizer: Path, tmp_path: Path) -> None:
    ended = unmask("prepare", text, "--tokenizer", tokenizer, "--out", tmp_path / "data")
    assert ended.stderr.startswith("preparing ...\npreparing: done in ")
    assert "\x1b" not in ended.stderr + ended.stdout
    assert "\r" not in ended.stderr + ended.stdout


@pytest.mark.parametrize(
    ("words", "difference"),
    [
        (["other.txt"], "it was begun with the file walks.txt, and now there is other.txt"),
        (["longer/walks.txt"], "the file walks.txt had"),
        (["walks.txt", "other.txt"], "it was begun with 1 input files, and now there are 2"),
        (["walks.txt", "--min-chars", "9"], "'clean' was 'cleaning, at least 2 visible characters'"),
        (["walks.txt", "--units", "entity"], "'layers' was ['sentence', 'word']"),
        (["walks.txt", "--vocab-size", "900"], "'vocabulary' was 'given"),
    ],
)
def test_another_corpus_is_refused(
    words: list[str], difference: str, unmask: Unmask, finished: Path, tokenizer: Path, expected: dict[str, bytes]
) -> None:
    given = [] if "--vocab-size" in words else ["--tokenizer", str(tokenizer)]
    ended = unmask("prepare", *words, *given, "--out", "data", cwd=finished)
    assert ended.returncode == 2
    assert "already holds another corpus" in ended.stderr
    assert difference in ended.stderr
    assert content(finished / "data") == expected


def test_input_that_changed_after_a_kill_is_refused(
    unmask: Unmask, text: Path, tokenizer: Path, tmp_path: Path
) -> None:
    out = tmp_path / "data"
    assert unmask("prepare", text, "--tokenizer", tokenizer, "--out", out).returncode == 0
    (out / "manifest.json").unlink()  # as if killed just before the end
    text.write_text(TEXT.replace("第1天", "第x天"), encoding="utf-8")  # the same size
    ended = unmask("prepare", text, "--tokenizer", tokenizer, "--out", out)
    assert ended.returncode == 2
    assert "was made of other text than the input holds now (near walks.txt:1)" in ended.stderr


@pytest.mark.parametrize("kind", ["folder", "file", "nothing at all"])
def test_out_must_be_free(kind: str, unmask: Unmask, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    if kind == "folder":
        out.mkdir()
        (out / "thesis.doc").write_text("years of work")
    elif kind == "file":
        out.write_text("years of work")
    else:
        out = text / "data"  # below a file
    before = content(tmp_path)
    ended = unmask("prepare", text, "--out", out)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert str(out) in ended.stderr
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    ("words", "out"),
    [(["."], "data"), (["corpus"], "corpus/data"), (["data/own.txt"], "data"), (["data/*.txt"], "data")],
)
def test_out_and_input_are_kept_apart(words: list[str], out: str, unmask: Unmask, tmp_path: Path) -> None:
    for name in ("corpus", "data"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.txt").write_text("自己的文档。", encoding="utf-8")
    before = content(tmp_path)
    ended = unmask("prepare", *words, "--out", out, cwd=tmp_path)
    assert ended.returncode == 2
    assert "outside" in ended.stderr or "Choose another folder" in ended.stderr
    assert content(tmp_path) == before


def shards_of(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in found.items() if name.startswith("shards") or name == "tokenizer.json"}


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(
    packed: bool, unmask: Unmask, tokenizer: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    raw = TEXT.encode()
    given = gzip.compress(raw, mtime=0) if packed else raw
    words = ("prepare", "-", "-", "--tokenizer", tokenizer, "--out", tmp_path / "data")
    first = unmask(*words, stdin=given)
    assert first.returncode == 0, first.stderr
    assert shards_of(content(tmp_path / "data")) == shards_of(expected)
    (tmp_path / "data" / "manifest.json").unlink()
    assert unmask(*words, stdin=given).returncode == 0  # the same again
    assert unmask(*words, stdin=b"").returncode == 0  # nothing: what is stored serves
    other = unmask(*words, stdin=raw + "还有一行。".encode())
    assert other.returncode == 2
    assert "standard input is not what it was" in other.stderr


def test_standard_input_of_json_lines(unmask: Unmask, tokenizer: Path, tmp_path: Path) -> None:
    given = '\ufeff\n{"text": "第一个文档。"}\n{"text": "第二个\n{"text": "第三个文档。"}\n'.encode()
    ended = unmask("prepare", "-", "--tokenizer", tokenizer, "--out", tmp_path / "data", stdin=given)
    assert ended.returncode == 0, ended.stderr
    assert "left out, broken JSON: stdin.jsonl:3" in ended.stderr
    assert re.search(r"documents\s+2\b", ended.stdout)


def test_empty_standard_input_leaves_nothing_behind(unmask: Unmask, tmp_path: Path) -> None:
    ended = unmask("prepare", "-", "--out", tmp_path / "data", stdin=b"")
    assert ended.returncode == 2
    assert "Nothing is left to prepare" in ended.stderr
    assert not (tmp_path / "data").exists()


def test_a_tokenizer_that_does_not_fit(unmask: Unmask, text: Path, tokenizer: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    assert unmask("prepare", text, "--vocab-size", 400, "--out", out).returncode == 0
    Corpus.open(out).verify()
    shutil.copy(tokenizer, out / "tokenizer.json")
    with pytest.raises(CorpusError, match="is not the tokenizer that these shards were made with"):
        Corpus.open(out)


@pytest.fixture
def small_disk(mount_disk: Callable[[int], Path]) -> Path:
    """A disk of one megabyte."""
    return mount_disk(1)


@pytest.mark.parametrize(("spare", "processes"), [(0, 1), (40, 1), (700, 1), (700, 2)])
def test_a_full_disk(
    spare: int, processes: int, small_disk: Path, unmask: Unmask, news: Path, tokenizer: Path, tmp_path: Path
) -> None:
    """With nothing free, with room for less than a tokenizer, and with room for some shards."""
    words = ("prepare", news, "--tokenizer", tokenizer, "-j", processes, "--out")
    assert unmask(*words, tmp_path / "roomy").returncode == 0
    out = small_disk / "data"
    (small_disk / "ballast").write_bytes(bytes((1000 - spare) * 1024))
    ended = unmask(*words, out)
    assert ended.returncode == 2
    assert f"The disk under {small_disk}" in ended.stderr
    assert "start the same command again to go on" in ended.stderr
    assert "Traceback" not in ended.stderr
    (small_disk / "ballast").unlink()
    subprocess.run(["mount", "-o", "remount,size=9m", str(small_disk)], check=True)
    assert unmask(*words, out).returncode == 0
    assert content(out) == content(tmp_path / "roomy")

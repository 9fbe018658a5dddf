"""Bad input costs the piece that is bad, is named with file and line, and nothing else is lost."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from prepare_runs import Unmask, content

from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Manifest
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer

GOOD = [f"第{number}号文件写得很好，没有任何问题。" for number in range(1, 36)]


def lines(texts: list[str]) -> bytes:
    return "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts).encode()


@pytest.fixture(scope="module")
def pile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of trouble in it, and 35 good documents between."""
    pile = tmp_path_factory.mktemp("pile")
    good = iter(GOOD)

    def take(count: int) -> list[str]:
        return [next(good) for _ in range(count)]

    (pile / "bytes.txt").write_bytes("\n\n".join(take(2)).encode() + b"\n\n\xe4\xbd\n\n" + take(1)[0].encode())
    (pile / "nul.txt").write_text("有\0空\0字符的文档也要留下来。\n\n" + take(1)[0], encoding="utf-8")
    (pile / "empty.txt").touch()
    (pile / "json.jsonl").write_bytes(lines(take(3)) + b'{"text": "half of it\n' + lines(take(3)))
    (pile / "field.jsonl").write_bytes(lines(take(2)) + '{"body": "不在这里"}\n'.encode() + lines(take(2)))
    (pile / "number.jsonl").write_bytes(lines(take(1)) + b'{"text": 5}\n' + lines(take(1)))
    whole = gzip.compress(lines(take(10)) + lines([os.urandom(64).hex() for _ in range(2000)]), mtime=0)
    (pile / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (pile / "noise.jsonl.gz").write_bytes(b"this is no gzip file")
    (pile / "gone.txt").symlink_to(pile / "nowhere.txt")
    (pile / "folder.txt").mkdir()
    (pile / "last.txt").write_text("\n\n".join(take(8)), encoding="utf-8")
    return pile


@pytest.fixture(scope="module")
def prepared(
    pile: Path, tokenizer: Path, unmask: Unmask, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = tmp_path_factory.mktemp("out") / "data"
    return out, unmask("prepare", pile, "--tokenizer", tokenizer, "--out", out)


Prepared = tuple[Path, "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    ("reason", "where"),
    [
        ("invalid UTF-8", "bytes.txt:5"),
        ("empty file", "empty.txt"),
        ("broken JSON", "json.jsonl:4"),
        ("missing field", "field.jsonl:3"),
        ("field is not a string", "number.jsonl:2"),
        ("damaged file", "cut.jsonl.gz:"),
        ("damaged file", "noise.jsonl.gz"),
        ("unreadable file", "gone.txt"),
    ],
)
def test_each_trouble_is_named(prepared: Prepared, reason: str, where: str) -> None:
    out, ended = prepared
    assert ended.returncode == 0, ended.stderr
    assert f"left out, {reason}: {where}" in ended.stderr
    listed = [json.loads(line) for line in (out / "dropped.jsonl").read_text("utf-8").splitlines()]
    assert any(piece["reason"] == reason and piece["where"].startswith(where) for piece in listed)
    assert Manifest.load(out).dropped[reason] >= 1


def test_nothing_else_is_lost(prepared: Prepared, tokenizer: Path) -> None:
    out, _ = prepared
    encode = Encoder(Tokenizer.load(tokenizer)).encode_text
    found = {document.tobytes() for shard in Corpus.open(out).shards for document in documents(shard)}
    expected = [*GOOD, "有空字符的文档也要留下来。"]
    assert [text for text in expected if encode(text).ids.astype(np.uint16).tobytes() not in found] == []
    assert Manifest.load(out).changed == {"control characters": 2}


def documents(shard: Shard) -> list[npt.NDArray[np.uint16]]:
    return np.split(np.asarray(shard.ids), shard.documents[1:-1])


def test_a_line_of_fifty_megabytes(unmask: Unmask, tokenizer: Path, tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    line = "".join(f"第{number}段文字没有换行也没有句号，" for number in range(1_100_000))
    assert len(line.encode()) > 50_000_000
    text.write_text(f"前面的文档。\n\n{line}\n\n后面的文档。\n", encoding="utf-8")
    out = tmp_path / "data"
    ended = unmask("prepare", text, "--tokenizer", tokenizer, "--out", out, "-j", 2)
    assert ended.returncode == 0, ended.stderr
    manifest = Manifest.load(out)
    assert manifest.counts.characters == len(line) + 12
    assert manifest.counts.documents == 2 + -(-len(line) // 2_000_000)


def test_all_input_left_out(unmask: Unmask, tmp_path: Path) -> None:
    text = tmp_path / "broken.jsonl"
    text.write_bytes(b'{"text": \n{"body": "x"}\n')
    ended = unmask("prepare", text, "--out", tmp_path / "data")
    assert ended.returncode == 2
    assert "Nothing is left to prepare: 2 pieces of input were left out" in ended.stderr
    assert "broken.jsonl:1: broken JSON" in ended.stderr
    assert not (tmp_path / "data").exists()


def test_documents_without_tokens_are_counted(unmask: Unmask, tokenizer: Path, tmp_path: Path) -> None:
    text = tmp_path / "invisible.txt"
    text.write_text("看得见的文字。\n\n\u200d\u200d\u200d\n", encoding="utf-8")
    ended = unmask("prepare", text, "--tokenizer", tokenizer, "--out", tmp_path / "data")
    assert ended.returncode == 0, ended.stderr
    manifest = Manifest.load(tmp_path / "data")
    assert manifest.dropped == {"document without tokens": 1}
    assert manifest.counts.documents == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["missing.txt"], "there is no such file or folder"),
        (["folder.txt"], "holds no file of a known kind"),
        (["picture.png"], "is not of a known kind"),
        (["pipe.txt"], "is no regular file"),
        (["good.txt", "--tokenizer", "good.txt"], "is not a tokenizer.json that can be used"),
        (["good.txt", "--tokenizer", "nowhere.json"], "cannot read the tokenizer"),
        (["good.txt", "--phrases", "nowhere.list"], "the phrase list cannot be read"),
        (["good.txt", "--for", "nobody"], "There is no member 'nobody'"),
        (["good.txt", "--units", "verse"], "--units takes phrase and entity"),
        (["good.txt", "--near-duplicate-threshold", "7"], "takes a number between 0 and 1"),
        (["good.txt", "--vocab-size", "3"], "choose a larger size"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(
    words: list[str], sentence: str, unmask: Unmask, tmp_path: Path
) -> None:
    (tmp_path / "good.txt").write_text("一个好文档。", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"png")
    (tmp_path / "folder.txt").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    before = content(tmp_path / "folder.txt")
    ended = unmask("prepare", *words, "--out", "data", cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "data").exists()
    assert content(tmp_path / "folder.txt") == before

"""`prepare --dialogues` from outside: conversations beside text, bad ones named with file and line."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from prepare_runs import Unmask, content

from unmask.core.records import UnitKind
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.dialogues import Dialogues
from unmask.data.input_formats.pairs import SegmentPairs
from unmask.data.tokenize.tokenizer import Tokenizer

TALKS = [["你去哪里？", "去公园。"], ["吃了吗？", "吃了。", "你呢？"], ["在吗", "在", "好", "再见"], ["早", "早上好"]]
BAD = ['{"turns": ["一个人"]}', '{"turns": "不是列表"}', '{"turns": [1, "二"]}', '{"text": "没有"}', "{"]
Prepared = tuple[Path, "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    (folder / "news.txt").write_text("今天下午公园里有很多花。\n\n明天早上我们吃面条。再见！\n", encoding="utf-8")
    rows = [json.dumps({"turns": turns}, ensure_ascii=False) for turns in TALKS[:3]]
    (folder / "talks.jsonl").write_text("\n".join([*rows, *BAD]) + "\n", encoding="utf-8")
    (folder / "more.txt").write_text("\n".join(TALKS[3]) + "\n\n没人回答\n", encoding="utf-8")
    return folder


def prepare(
    unmask: Unmask, sources: Path, tokenizer: Path, out: Path, *more: object
) -> subprocess.CompletedProcess[str]:
    talks = ("--dialogues", sources / "talks.jsonl", "--dialogues", sources / "more.txt")
    return unmask("prepare", sources / "news.txt", *talks, "--tokenizer", tokenizer, "--out", out, "-j", 1, *more)


@pytest.fixture(scope="module")
def prepared(sources: Path, tokenizer: Path, unmask: Unmask, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    out = tmp_path_factory.mktemp("out") / "data"
    return out, prepare(unmask, sources, tokenizer, out)


def test_conversations_are_documents_behind_the_text(prepared: Prepared) -> None:
    out, ended = prepared
    assert ended.returncode == 0, ended.stderr
    assert "dialogues   4 of them, with 11 turns" in ended.stdout
    corpus = Corpus.open(out)
    counts = corpus.manifest.counts
    assert (counts.documents, counts.dialogues, counts.turns) == (6, 4, 11)
    assert UnitKind.TURN in corpus.layers
    text, shard = corpus.shards
    assert text.conversations.tolist() == []
    assert shard.conversations.tolist() == [0, 1, 2, 3]
    names, borders = Tokenizer.load(out / "tokenizer.json"), [*shard.turns.tolist(), len(shard.ids)]
    spoken = ["".join(names.ids_to_tokens(shard.ids[a:b])) for a, b in pairwise(borders)]
    assert spoken == [turn for turns in TALKS for turn in turns]


def test_the_dialogue_task_reads_them_and_so_does_every_other(prepared: Prepared) -> None:
    corpus = Corpus.open(prepared[0])
    first = corpus.shards[1].base
    talk = Dialogues(fake_fraction=0.0).plan(corpus, 64, Key.of(0))
    assert (talk.start >= first).all()
    text = SegmentPairs().plan(corpus, 64, Key.of(0))
    assert (text.start < first).any()
    assert (text.start >= first).any()


def test_bad_conversations_are_named_with_file_and_line(prepared: Prepared) -> None:
    out, ended = prepared
    left = [json.loads(line) for line in (out / "dropped.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["where"], row["reason"]) for row in left] == [
        *((f"talks.jsonl:{line}", "unusable dialogue") for line in (4, 5, 6, 7)),
        ("talks.jsonl:8", "broken JSON"),
        ("more.txt:4", "unusable dialogue"),
    ]
    assert "left out, unusable dialogue: talks.jsonl:4: a dialogue has at least 2 turns, this one has 1" in ended.stderr


def test_the_same_command_again_is_done_and_another_is_refused(
    prepared: Prepared, sources: Path, tokenizer: Path, unmask: Unmask
) -> None:
    out, _ = prepared
    before = content(out)
    assert "is prepared already" in prepare(unmask, sources, tokenizer, out).stderr
    assert content(out) == before
    files = [sources / name for name in ("news.txt", "talks.jsonl", "more.txt")]
    refused = unmask("prepare", *files, "--tokenizer", tokenizer, "--out", out)
    assert refused.returncode == 2
    assert "'dialogues' was 'more.txt, talks.jsonl' and is now None" in refused.stderr


def test_a_file_in_a_folder_of_text_may_hold_conversations(
    sources: Path, tokenizer: Path, unmask: Unmask, tmp_path: Path
) -> None:
    talks = ("--dialogues", sources / "talks.jsonl", "--dialogues", sources / "more.txt")
    ended = unmask("prepare", sources, *talks, "--tokenizer", tokenizer, "--out", tmp_path / "data", "-j", 1)
    assert ended.returncode == 0, ended.stderr
    assert (Corpus.open(tmp_path / "data").manifest.counts.dialogues) == 4


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("nowhere.jsonl", "there is no such file"),
        ("-", "--dialogues takes files, folders or patterns, not standard input"),
        ("table.parquet", "conversations are read from .jsonl and .txt files"),
    ],
)
def test_what_cannot_hold_conversations_is_refused(
    given: str, why: str, sources: Path, tokenizer: Path, unmask: Unmask, tmp_path: Path
) -> None:
    (tmp_path / "table.parquet").touch()
    news, out = sources / "news.txt", tmp_path / "data"
    ended = unmask("prepare", news, "--dialogues", given, "--tokenizer", tokenizer, "--out", out, cwd=tmp_path)
    assert ended.returncode == 2
    assert why in ended.stderr
    assert not out.exists()


def test_a_member_that_talks_says_that_it_has_nothing_to_talk_about(
    sources: Path, tokenizer: Path, unmask: Unmask, tmp_path: Path
) -> None:
    words = ("prepare", sources / "news.txt", "--for", "ernie", "--tokenizer", tokenizer, "-j", 1, "--out")
    ended = unmask(*words, tmp_path / "data")
    assert ended.returncode == 0
    assert "none were given" in ended.stderr
    assert "ernie:text" in ended.stderr
    refused = unmask("audit", "ernie", "--data", tmp_path / "data")
    assert refused.returncode == 2
    assert "--dialogues TALKS.jsonl" in refused.stderr

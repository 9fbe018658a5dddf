"""The stream of documents: always the same documents, cut at the same places, and everything left out is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unmask.core.errors import InputError
from unmask.core.records import DroppedInput
from unmask.data.corpus import document_stream as module
from unmask.data.corpus.document_stream import (
    CollectConfig,
    DropCounts,
    lines_of,
    sample_documents,
    shard_inputs,
    stream_documents,
)
from unmask.data.corpus.prepare import MAX_SHARD_CHARACTERS, MIN_SHARD_CHARACTERS, check_not_empty, shard_size
from unmask.data.text.dedup import MinHashConfig

SENTENCES = [f"第{number}个文档谈的是天气。" for number in range(300)]


@pytest.fixture
def source(tmp_path: Path) -> list[str]:
    rows = [json.dumps({"text": text}, ensure_ascii=False) for text in SENTENCES]
    rows[100:100] = [rows[7], "{", json.dumps({"text": "\x00 好\x01"})]
    (tmp_path / "a.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return [str(tmp_path / "a.jsonl")]


def test_documents_are_kept_in_order_and_the_rest_is_counted(source: list[str]) -> None:
    tally = DropCounts()
    kept = [document.text for document in stream_documents(source, CollectConfig(), tally)]
    assert kept == SENTENCES
    assert tally.dropped == {"exact duplicate": 1, "broken JSON": 1, "near-empty document": 1}
    assert [piece.where for piece in tally.listed] == ["a.jsonl:101", "a.jsonl:102", "a.jsonl:103"]
    assert tally.num_removed_chars == 2


def test_near_duplicates_are_left_out_when_asked(tmp_path: Path) -> None:
    long = "今天的天气很好，我们一起去公园散步，看到许多花开了，孩子们在草地上跑来跑去。" * 5
    (tmp_path / "a.txt").write_text(f"{long}\n\n{long}再见。\n\n完全不同的文字。", encoding="utf-8")
    tally = DropCounts()
    assert (
        len(list(stream_documents([str(tmp_path)], CollectConfig(near_duplicates=(MinHashConfig(0.8),)), tally))) == 2
    )
    assert tally.dropped == {"near duplicate": 1}


def test_long_lists_are_cut_and_still_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LISTED", 3)
    tally = DropCounts()
    for number in range(9):
        tally.drop(DroppedInput("broken JSON", f"a:{number}"))
    assert (len(tally.listed), tally.dropped["broken JSON"]) == (3, 9)


def test_batches_hold_every_document_once(source: list[str]) -> None:
    made = list(shard_inputs(source, CollectConfig(), 500, DropCounts()))
    assert [document.text for batch in made for document in batch.documents] == SENTENCES
    assert [batch.number for batch in made] == list(range(len(made)))
    sizes = [sum(len(document.text) for document in batch.documents) for batch in made]
    assert min(sizes[:-1]) >= 500 > max(sizes) - len(SENTENCES[-1])
    assert made[-1].position == Path(source[0]).stat().st_size
    assert [batch.digest for batch in shard_inputs(source, CollectConfig(), 500, DropCounts())] == [
        b.digest for b in made
    ]


def test_a_sample_is_even_and_always_the_same(source: list[str]) -> None:
    told: list[int] = []
    everything = Path(source[0]).stat().st_size / 2.5
    drawn = [
        document.id
        for document in sample_documents(source, CollectConfig(), told.append, characters=int(everything / 3))
    ]
    assert drawn == [
        document.id for document in sample_documents(source, CollectConfig(), characters=int(everything / 3))
    ]
    assert 60 < len(drawn) < 140  # about a third of 300
    assert told[-1] == Path(source[0]).stat().st_size
    assert [document.text for document in sample_documents(source, CollectConfig())] == SENTENCES


def test_a_vocabulary_is_trained_on_lines(source: list[str]) -> None:
    assert list(lines_of(stream_documents(source, CollectConfig(), DropCounts()))) == SENTENCES


def test_shards_are_neither_tiny_nor_huge() -> None:
    assert [shard_size(size) for size in (0, 150 * 200_000, 1 << 50)] == [
        MIN_SHARD_CHARACTERS,
        200_000,
        MAX_SHARD_CHARACTERS,
    ]


def test_input_of_which_nothing_is_kept_is_refused(tmp_path: Path, source: list[str]) -> None:
    check_not_empty(source, CollectConfig())
    (tmp_path / "bad.jsonl").write_text('{"text": "。"}\n{', encoding="utf-8")
    with pytest.raises(InputError, match=r"2 pieces of input were left out.*bad\.jsonl:1: near-empty document"):
        check_not_empty([str(tmp_path / "bad.jsonl")], CollectConfig())

"""Conversations in shards: found again, counted, and absent from what was prepared before there were any."""

from __future__ import annotations

import json
from pathlib import Path

from unmask.core.records import Document, UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.manifest import Counts, Manifest, shard_folder
from unmask.data.corpus.shard_worker import text_digest, write_shard
from unmask.data.text.dialogues import make_dialogue, parse_dialogue
from unmask.data.text.files.lines import RawRow
from unmask.data.text.units.sentences import Sentences
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece

TEXT = Document("text", "今天天气很好。我们去公园。")
TALK = make_dialogue("talk", ["今天去公园吗？好不好？", "好", "走"])


def write(folder: Path) -> None:
    """A text, a conversation, a text."""
    tokenizer = train_tokenizer(WordPiece(size=60, min_count=1), [TEXT.text, *TALK.text.split("\n")])
    tokenizer.save(folder / "tokenizer.json")
    docs = [Encoder(tokenizer)(Sentences()(one)) for one in (TEXT, TALK, TEXT)]
    info = write_shard(shard_folder(folder, 0), docs, (tokenizer.vocab.size, tokenizer.vocab.unk), "source", 7)
    Manifest(tokenizer.digest, "", (UnitKind.TURN,), {}, info.counts, {}, {}, (info,)).save(folder / "manifest.json")


def test_conversations_are_found_again(tmp_path: Path) -> None:
    write(tmp_path)
    corpus = Corpus.open(tmp_path)
    (shard,) = corpus.shards
    assert (corpus.manifest.counts.dialogues, corpus.manifest.counts.turns) == (1, 3)
    assert shard.conversations.tolist() == [1]
    assert shard.turns.tolist() == [13, 24, 25]
    assert ((shard.units[shard.turns] & UnitFlag.REPLY) != 0).tolist() == [False, True, False]
    assert shard.documents.tolist() == [0, 13, 26, 39]


def test_a_corpus_from_before_opens_and_has_none(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for counts in (manifest["counts"], manifest["shards"][0]["counts"]):
        del counts["dialogues"], counts["turns"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert Corpus.open(tmp_path).manifest.counts.dialogues == 0
    assert Counts() == Counts(dialogues=0, turns=0)


def test_who_speaks_counts_when_text_is_compared() -> None:
    """Preparing goes on only with the text it was begun with, and roles are part of it."""
    roles = [[{"role": role, "text": text} for role, text in zip(who, "abc", strict=True)] for who in ("QRQ", "QRR")]
    talks = [parse_dialogue(RawRow("talk", {"turns": turns}), 99) for turns in roles]
    documents = [talk for talk in talks if isinstance(talk, Document)]
    assert len({text_digest([document]) for document in (*documents, Document("text", "a\nb\nc"))}) == 3

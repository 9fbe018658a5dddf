"""TokenDocs to disk and back: what is opened is what was written, at any address."""

from __future__ import annotations

import json
import resource
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unmask.core.errors import CorpusError
from unmask.core.records import Document, Spans, TokenDoc, TokenUnits, UnitFlag, UnitKind
from unmask.core.rng import DrawPurpose, Key, randint
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.manifest import Counts, Manifest, ShardInfo, shard_folder, shard_info
from unmask.data.corpus.shard_worker import write_shard
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece

UNKNOWN = 1


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(WordPiece(size=60), ["今天天气很好，我们去公园。"] * 5)


def token_doc(number: int, length: int) -> TokenDoc:
    """A document whose ids tell where they stand."""
    ids = (number * 100 + np.arange(length)).astype(np.int32)
    words = Spans(np.arange(0, length, 3), np.minimum(np.arange(0, length, 3) + 3, length))
    entity = Spans.of((1, 3)) if length > 3 else Spans.of()
    units = TokenUnits.of(length, {UnitKind.WORD: words, UnitKind.ENTITY: entity})
    labels = (f"name {number % 2}",) * len(entity)
    return TokenDoc(ids, units, {UnitKind.ENTITY: labels})


def write_corpus(folder: Path, shards: list[list[TokenDoc]], tokenizer: Tokenizer) -> Manifest:
    tokenizer.save(folder / "tokenizer.json")
    infos = tuple(
        write_shard(shard_folder(folder, number), docs, (60_000, UNKNOWN), f"source {number}", 7)
        for number, docs in enumerate(shards)
    )
    counts = sum((info.counts for info in infos), Counts())
    layers = (UnitKind.WORD, UnitKind.ENTITY)
    manifest = Manifest(tokenizer.digest, "text", layers, {"read": "x"}, counts, {"broken JSON": 2}, {}, infos)
    manifest.save(folder / "manifest.json")
    return manifest


@pytest.fixture
def corpus(tmp_path: Path, tokenizer: Tokenizer) -> Corpus:
    shards = [[token_doc(0, 10), token_doc(1, 5)], [token_doc(2, 30)], [token_doc(3, 1), token_doc(4, 12)]]
    write_corpus(tmp_path, shards, tokenizer)
    return Corpus.open(tmp_path)


def test_what_is_opened_is_what_was_written(tmp_path: Path) -> None:
    docs = [token_doc(0, 10), token_doc(1, 0), token_doc(2, 5)]
    info = write_shard(tmp_path / "00000", docs, (60_000, UNKNOWN), "digest", characters=21)
    loaded = {path.stem: np.load(path) for path in (tmp_path / "00000").glob("*.npy")}
    np.testing.assert_array_equal(loaded["ids"], np.concatenate([doc.ids for doc in docs]))
    np.testing.assert_array_equal(loaded["units"], np.concatenate([doc.units.bits for doc in docs]))
    assert loaded["documents"].tolist() == [0, 10, 15]  # a document without tokens is not there
    assert [info.labels[number] for number in loaded["entities"]] == ["name 0", "name 0"]
    assert info.counts == Counts(
        documents=2, words=6, sentences=2, entities=2, characters=21, tokens=15, unknown=1, empty=1
    )
    assert shard_info(json.loads((tmp_path / "00000" / "info.json").read_text())) == info
    assert set(info.files) == set(loaded)


@pytest.mark.parametrize(("size", "kind"), [(60_000, np.uint16), (65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_two_bytes_where_they_can(tmp_path: Path, size: int, kind: type[np.integer]) -> None:
    ids = np.array([0, size - 1], dtype=np.int32)
    write_shard(tmp_path / "0", [TokenDoc(ids, TokenUnits.of(2, {}))], (size, UNKNOWN), "", 2)
    loaded = np.load(tmp_path / "0" / "ids.npy")
    assert loaded.dtype == kind
    assert loaded.tolist() == [0, size - 1]


def test_the_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_shard(tmp_path / name, [token_doc(n, 9) for n in range(4)], (60_000, UNKNOWN), "s", 9)
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("a", "b")]
    assert files[0] == files[1]


def test_a_shard_without_any_token_can_be_opened(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_corpus(tmp_path, [[token_doc(0, 4)], [token_doc(1, 0)], [token_doc(2, 4)]], tokenizer)
    corpus = Corpus.open(tmp_path)
    assert [len(shard.ids) for shard in corpus.shards] == [4, 0, 4]
    ids, bits = np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.uint8)
    corpus.gather(np.array([4]), np.array([2]), ids, bits, np.array([0]))
    assert ids.tolist() == [200, 201]


def test_a_manifest_survives_the_disk(tmp_path: Path, tokenizer: Tokenizer) -> None:
    manifest = write_corpus(tmp_path, [[token_doc(0, 4)]], tokenizer)
    assert Manifest.load(tmp_path) == manifest
    assert isinstance(manifest.shards[0], ShardInfo)


def test_counts_add_up() -> None:
    one = Counts(1, 2, 3, 4, 5, 6, 7, 8, 9)
    assert one + one == Counts(2, 4, 6, 8, 10, 12, 14, 16, 18)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"format": 0}, "format 1"), ({"layers": ["verse"]}, "damaged"), ({"extra": 1}, "damaged")],
)
def test_a_strange_manifest_is_refused(
    change: dict[str, object], sentence: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    write_corpus(tmp_path, [[token_doc(0, 4)]], tokenizer)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CorpusError, match=sentence):
        Manifest.load(tmp_path)


def test_a_folder_without_a_manifest_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="Make one with: unmask prepare"):
        Corpus.open(tmp_path)
    (tmp_path / "work.json").touch()
    with pytest.raises(CorpusError, match="start the same command again to finish it"):
        Corpus.open(tmp_path)


def test_gathering_equals_slices(corpus: Corpus) -> None:
    ids = np.concatenate([shard.ids for shard in corpus.shards]).astype(np.int32)
    bits = np.concatenate([shard.units for shard in corpus.shards])
    home = np.concatenate([np.full(len(shard.ids), n) for n, shard in enumerate(corpus.shards)])
    draws = Key.of(1, "pieces").bits(DrawPurpose.PLACE, 400).reshape(200, 2)
    start = randint(draws[:, 0], len(ids))
    length = randint(draws[:, 1], 6)
    length = np.minimum(length, np.array([np.sum(home[at:] == home[at]) for at in start]))  # a piece has one home
    place = np.cumsum(length) - length
    out_ids, out_bits = np.zeros(length.sum(), dtype=np.int32), np.zeros(length.sum(), dtype=np.uint8)
    corpus.gather(start, length, out_ids, out_bits, place)
    pieces = [slice(at, at + size) for at, size in zip(start, length, strict=True)]
    np.testing.assert_array_equal(out_ids, np.concatenate([ids[piece] for piece in pieces]))
    np.testing.assert_array_equal(out_bits, np.concatenate([bits[piece] for piece in pieces]))
    assert len(set(home[start])) == 3


def test_a_shard_knows_its_sentences(corpus: Corpus) -> None:
    for shard in corpus.shards:
        oracle = [place for place, bits in enumerate(shard.units) if bits & UnitFlag.SENTENCE]
        assert shard.sentences.tolist() == [*oracle, len(shard.ids)]
    assert corpus.layers == {UnitKind.WORD, UnitKind.ENTITY}
    assert corpus.bases.tolist() == [0, 15, 45, 58]


@pytest.mark.parametrize("name", ["ids", "units", "documents", "entities"])
def test_a_flipped_bit_is_found(corpus: Corpus, name: str) -> None:
    corpus.verify()
    path = shard_folder(corpus.folder, 1) / f"{name}.npy"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(CorpusError, match=f"00001/{name}.npy has changed"):
        corpus.verify()


@pytest.mark.parametrize("damage", ["missing", "cut", "short", "not an array"])
def test_a_damaged_shard_is_refused(corpus: Corpus, damage: str) -> None:
    path = shard_folder(corpus.folder, 2) / "ids.npy"
    if damage == "missing":
        path.unlink()
    elif damage == "short":
        np.save(path, np.zeros(3, dtype=np.uint16))
    else:
        path.write_bytes(path.read_bytes()[:-4] if damage == "cut" else b"hello")
    with pytest.raises(CorpusError, match="00002"):
        Corpus.open(corpus.folder)


def test_another_tokenizer_is_refused(corpus: Corpus) -> None:
    train_tokenizer(WordPiece(size=50), ["别的文字"] * 5).save(corpus.folder / "tokenizer.json")
    with pytest.raises(CorpusError, match="is not the tokenizer that these shards were made with"):
        Corpus.open(corpus.folder)


def test_more_shards_than_a_process_may_open_files(tmp_path: Path, tokenizer: Tokenizer) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1500:
        pytest.skip("this system allows no more open files")
    manifest = write_corpus(tmp_path, [[token_doc(0, 4)]], tokenizer)
    many = 60
    for number in range(1, many):
        shutil.copytree(shard_folder(tmp_path, 0), shard_folder(tmp_path, number))
    counts = sum((manifest.counts for _ in range(many)), Counts())
    replace(manifest, shards=manifest.shards * many, counts=counts).save(tmp_path / "manifest.json")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
        assert len(Corpus.open(tmp_path).shards) == many
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_batch_digest_counts_borders() -> None:
    from unmask.data.corpus.shard_worker import text_digest

    assert text_digest([Document("a", "天气"), Document("b", "很好")]) != text_digest([Document("a", "天气很好")])
    assert text_digest([Document("a", "天气")]) == text_digest([Document("b", "天气")])


@pytest.mark.parametrize("spec", [WordPiece(), WordPiece(size=5)], ids=["text too short", "size too small"])
def test_a_vocabulary_without_entries_is_refused_with_both_ways_out(tmp_path: Path, spec: WordPiece) -> None:
    write_corpus(tmp_path, [[token_doc(0, 4)]], train_tokenizer(spec, ["这本书很好。"]))
    with pytest.raises(CorpusError) as caught:
        Corpus.open(tmp_path)
    for said in ("it comes at least twice and the vocabulary has room", "prepare more text, or,", "--vocab-size"):
        assert said in str(caught.value)

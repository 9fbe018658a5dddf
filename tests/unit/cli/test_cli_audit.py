"""The command: what is named, what is printed, and what the exit code says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from unmask.cli.audit import audit
from unmask.core.errors import CorpusError, RecipeError
from unmask.core.io.atomic import write_array
from unmask.core.records import UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest, ShardInfo, shard_folder
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.data.tokenize.vocab import Vocab

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(audit)


@pytest.fixture(autouse=True)
def corpus(monkeypatch, tmp_path):
    """Sixty documents of words of two tokens, in place of a folder."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    WordPiece().untrained_pipeline().save("data/tokenizer.json")
    rng = np.random.default_rng(1)
    documents = np.arange(61) * 400
    bits = np.zeros(documents[-1], np.uint8)
    bits[::2] = UnitFlag.WORD
    bits[::40] = UnitFlag.BORDER
    ids = rng.integers(10, 500, len(bits)).astype(np.uint16)
    vocab = Vocab(500, 2, 3, 4, 0, 1, np.arange(10, 500, dtype=np.int32), np.zeros(0, np.int32))
    counts = Counts(documents=60, tokens=len(bits))
    manifest = Manifest("", "", (UnitKind.WORD, UnitKind.SENTENCE), {}, counts, {}, {})
    made = Corpus(Path("data"), manifest, (Shard(ids, bits, documents, 0),), vocab)
    monkeypatch.setattr(Corpus, "open", staticmethod(lambda folder: made))
    return made


def run(*words):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [*words, "--data", "data"], catch_exceptions=True)


def test_a_sound_member_exits_with_0_and_fits_80_columns():
    result = run("wwm", "--rows", "100")
    assert result.exit_code == 0
    assert "words left half-masked" in result.output
    assert "rows of 128" in result.output
    assert "rows of 512" in result.output
    assert "wwm: every judged rule holds (26); 2 could not be judged, too few rows." in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_a_broken_rule_exits_with_1_and_says_what_to_do():
    result = run("macbert", "--max-length", "128", "--rows", "100")
    assert result.exit_code == 1
    assert "unmask similar-words --data data" in result.output


def test_another_kind_of_vocabulary_is_noted_before_the_tables():
    result = run("roberta", "--max-length", "128", "--rows", "100")
    note = "note: data has a WordPiece vocabulary; roberta's is ByteBPE (prepare --for roberta)"
    assert result.output.splitlines()[0] == note
    assert result.exit_code == 0
    assert "note" not in run("bert", "--max-length", "128", "--rows", "100").output


def test_a_note_stays_out_of_the_json():
    result = run("roberta", "--max-length", "128", "--rows", "20", "--json")
    assert json.loads(result.stdout)["name"] == "roberta"
    assert "note: data has a WordPiece vocabulary" in result.stderr


def test_a_few_rows_are_not_called_sound():
    result = run("wwm", "--max-length", "128", "--rows", "1")
    assert "1 row, " in result.output
    assert "too few rows" in result.output
    assert "-" not in {word[:1] for line in result.output.splitlines() for word in line.split() if "." in word}
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.fixture
def stored(corpus, monkeypatch):
    """The same corpus with the files of its one shard in place; their folder."""
    folder, shard = shard_folder(Path("data"), 0), corpus.shards[0]
    folder.mkdir(parents=True)
    arrays = {"ids": shard.ids, "units": shard.units, "documents": shard.documents}
    files = {name: write_array(folder / f"{name}.npy", array) for name, array in arrays.items()}
    manifest = replace(corpus.manifest, shards=(ShardInfo(corpus.manifest.counts, "", files),))
    monkeypatch.setattr(Corpus, "open", staticmethod(lambda folder: replace(corpus, manifest=manifest)))
    return folder


def test_sound_files_are_verified_and_audited(stored):
    result = run("wwm", "--verify", "--max-length", "128", "--rows", "100")
    assert result.exit_code == 0
    assert "tokens chosen (15 % wanted)" in result.output


def test_a_changed_file_is_found_before_anything_is_measured(stored):
    path = stored / "units.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert run("wwm", "--max-length", "128", "--rows", "100").exit_code == 0
    result = run("wwm", "--verify", "--max-length", "128", "--rows", "100")
    assert isinstance(result.exception, CorpusError)
    assert "units.npy has changed since it was written" in str(result.exception)


def test_a_file_that_is_gone_is_told_as_damage(stored):
    (stored / "documents.npy").unlink()
    result = run("wwm", "--verify")
    assert isinstance(result.exception, CorpusError)
    assert "The corpus in data is damaged" in str(result.exception)


def test_a_histogram_is_drawn_beside_its_law():
    result = run("--rule", "span", "--rows", "60", "--max-length", "256")
    assert "run length in words: measured #, law |" in result.output
    assert " 22.41 %" in result.output


def test_json_is_all_that_is_printed():
    result = run("bert", "--json", "--rows", "50", "--set", "stages.0.max_length=64")
    said = json.loads(result.output)
    assert [section["length"] for section in said["sections"]] == [64, 512]


@pytest.mark.parametrize("words", [(), ("bert", "--rule", "span"), ("--rule", "span", "--set", "a=b"), ("nobody",)])
def test_a_mistake_is_told(words):
    assert isinstance(run(*words).exception, RecipeError)


def test_a_folder_that_is_not_prepared_is_told(monkeypatch, tmp_path):
    monkeypatch.undo()
    result = CliRunner().invoke(app, ["bert", "--data", str(tmp_path)])
    assert isinstance(result.exception, CorpusError)

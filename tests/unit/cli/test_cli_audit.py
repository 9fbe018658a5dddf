"""The command: what is named, what is printed, and what the exit code says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from unmask.cli.audit import audit
from unmask.errors import CorpusError, RecipeError
from unmask.records import Flag, Layer
from unmask.shards.corpus import Corpus, Shard
from unmask.shards.manifest import Counts, Manifest
from unmask.tokenize.vocab import Vocab

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(audit)


@pytest.fixture(autouse=True)
def corpus(monkeypatch):
    """Sixty documents of words of two tokens, in place of a folder."""
    rng = np.random.default_rng(1)
    documents = np.arange(61) * 400
    bits = np.zeros(documents[-1], np.uint8)
    bits[::2] = Flag.WORD
    bits[::40] = Flag.BORDER
    ids = rng.integers(10, 500, len(bits)).astype(np.uint16)
    vocab = Vocab(500, 2, 3, 4, 0, 1, np.arange(10, 500, dtype=np.int32), np.zeros(0, np.int32))
    counts = Counts(documents=60, tokens=len(bits))
    manifest = Manifest("", "", (Layer.WORD, Layer.SENTENCE), {}, counts, {}, {})
    made = Corpus(Path("data"), manifest, (Shard(ids, bits, documents, 0),), vocab)
    monkeypatch.setattr(Corpus, "open", staticmethod(lambda folder: made))


def run(*words):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [*words, "--data", "data"], catch_exceptions=True)


def test_a_sound_member_exits_with_0_and_fits_80_columns():
    result = run("wwm", "--rows", "100")
    assert result.exit_code == 0
    assert "words left half-masked" in result.output
    assert "rows of 128" in result.output
    assert "rows of 512" in result.output
    assert "wwm: every rule holds" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_a_broken_rule_exits_with_1_and_says_what_to_do():
    result = run("macbert", "--length", "128", "--rows", "100")
    assert result.exit_code == 1
    assert "unmask vectors --data data" in result.output


def test_a_histogram_is_drawn_beside_its_law():
    result = run("--rule", "span", "--rows", "60", "--length", "256")
    assert "run length in words: measured #, law |" in result.output
    assert " 22.41 %" in result.output


def test_json_is_all_that_is_printed():
    result = run("bert", "--json", "--rows", "50", "--set", "stages.0.length=64")
    said = json.loads(result.output)
    assert [section["length"] for section in said["sections"]] == [64, 512]


@pytest.mark.parametrize("words", [(), ("bert", "--rule", "span"), ("--rule", "span", "--set", "a=b"), ("nobody",)])
def test_a_mistake_is_told(words):
    assert isinstance(run(*words).exception, RecipeError)


def test_a_folder_that_is_not_prepared_is_told(monkeypatch, tmp_path):
    monkeypatch.undo()
    result = CliRunner().invoke(app, ["bert", "--data", str(tmp_path)])
    assert isinstance(result.exception, CorpusError)

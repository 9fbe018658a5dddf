"""`unmask similar-words` on a prepared folder: what it prints, what it leaves, what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest
from small_words import LONG, make_corpus, make_tokenizer, sentences
from typer import Typer
from typer.testing import CliRunner

from unmask.cli.similar_words import similar_words
from unmask.core.errors import CorpusError, InputError
from unmask.core.records import TokenDoc, TokenUnits
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.shard_worker import write_shard

APP = Typer()
APP.command()(similar_words)
TOKENIZER = make_tokenizer()


@pytest.fixture
def folder(tmp_path):
    """A prepared corpus on disk."""
    corpus = make_corpus(sentences(60), TOKENIZER)
    shard = corpus.shards[0]
    doc = TokenDoc(shard.ids.astype(np.int32), TokenUnits(shard.units))
    (tmp_path / "shards").mkdir()
    info = write_shard(tmp_path / "shards" / "00000", [doc], (TOKENIZER.vocab.size, TOKENIZER.vocab.unk), "", 0)
    replace(corpus.manifest, counts=info.counts, shards=(info,)).save(tmp_path / "manifest.json")
    TOKENIZER.save(tmp_path / "tokenizer.json")
    return tmp_path


def call(*words):
    result = CliRunner().invoke(APP, list(map(str, words)))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "vectors").iterdir()}


def test_the_table_is_made_shown_and_picked_up(folder):
    result = call("--data", folder, "--dim", 8, "--epochs", 2, "--at-least", -1)
    assert result.exit_code == 0
    assert "may be replaced by" in result.stdout
    assert "% have a similar word" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    table = Corpus.open(folder).vocab.similar_words
    puppy, kitten = (np.array(TOKENIZER.pipeline.encode(word, add_special_tokens=False).ids) for word in LONG)
    draws = np.zeros(2, np.uint64)
    assert table.random_similar(puppy, np.array([0]), draws, puppy).tolist() == kitten.tolist()
    assert json.loads((folder / "vectors" / "table.json").read_text())["settings"]["dim"] == 8


def test_the_same_command_writes_the_same_bytes(folder):
    call("--data", folder, "--dim", 8, "--epochs", 1, "--seed", 3)
    first = files(folder)
    call("--data", folder, "--dim", 8, "--epochs", 1, "--seed", 3)
    assert files(folder) == first
    call("--data", folder, "--dim", 8, "--epochs", 1, "--seed", 4)
    assert files(folder)["vectors.npy"] != first["vectors.npy"]


def test_synonyms_alone_need_no_training(folder):
    (folder / "synonyms.txt").write_text("cat dog\nsaw hen\n")
    result = call("--data", folder, "--method", "none", "--synonyms", folder / "synonyms.txt")
    assert "training" not in result.stderr
    assert "vectors.npy" not in files(folder)
    assert len(Corpus.open(folder).vocab.similar_words.neighbours) == 4


def test_an_empty_table_ends_with_a_warning(folder):
    (folder / "synonyms.txt").write_text("lion tiger\n")
    result = call("--data", folder, "--method", "none", "--synonyms", folder / "synonyms.txt")
    assert "Warning: no word has a similar word" in result.stderr
    result = call("--data", folder, "--dim", 4, "--epochs", 1, "--at-least", -1)
    assert "Warning" not in result.stderr


@pytest.mark.parametrize(("cores", "advised"), [(1, ""), (2, "-j 2 "), (16, "-j 4 "), (None, "")])
def test_threads_are_mentioned_when_there_is_much_to_read(folder, monkeypatch, cores, advised):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    quick = ("--data", folder, "--dim", 4, "--epochs", 1)
    assert "-j" not in call(*quick).stderr
    monkeypatch.setattr("unmask.cli.similar_words._MANY", 100)
    told = call(*quick).stderr
    assert f"{advised}would be faster" in told if advised else "-j" not in told
    assert "-j" not in call(*quick, "-j", 2).stderr


def test_an_interruption_says_that_nothing_changed(folder, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unmask.data.similar_words.train_vectors.train_vectors", interrupted)
    result = call("--data", folder)
    assert result.exit_code == 130
    assert "unmask: stopped." in result.stderr
    assert not (folder / "vectors").exists()


def test_refusals(folder):
    with pytest.raises(InputError, match="--synonyms FILE"):
        call("--data", folder, "--method", "none")
    with pytest.raises(CorpusError, match="no prepared corpus"):
        call("--data", folder / "elsewhere")


def test_a_table_for_another_tokenizer_is_refused_when_the_corpus_is_opened(folder):
    call("--data", folder, "--dim", 4, "--epochs", 1)
    path = folder / "vectors" / "table.json"
    path.write_text(path.read_text().replace(TOKENIZER.digest, "0" * 32))
    with pytest.raises(CorpusError, match="another tokenizer"):
        Corpus.open(folder)

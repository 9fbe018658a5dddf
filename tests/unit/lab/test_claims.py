"""The claims of the bench: every arm is a recipe that can be built, and a verdict follows its rule."""

from __future__ import annotations

import shlex
import sys
import time
from argparse import Namespace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from unmask.api.short_run import short_recipe
from unmask.cli.main import app
from unmask.cli.ui.console import apply_changes
from unmask.core.codec import fingerprint
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.holdout import split_heldout
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.text.sample_corpora import peoples_daily
from unmask.members import member
from unmask.nets.model import EncoderWithHeads

BENCH = Path(__file__).parents[3] / "bench"
sys.path.insert(0, str(BENCH))
from claims_border import border  # noqa: E402
from claims_jobs import Bench, Entry, Job, Work  # noqa: E402
from claims_list import CLAIMS, Expect  # noqa: E402
from claims_probe import Opened, correct, far, rows_of  # noqa: E402
from claims_text import cut  # noqa: E402
from claims_verdict import Measured, tables, verdict  # noqa: E402

sys.path.remove(str(BENCH))


@pytest.mark.parametrize("name", CLAIMS)
def test_every_arm_is_a_recipe_of_its_own(name):
    claim = CLAIMS[name]
    made = set()
    for words in claim.arms.values():
        own, *changes = shlex.split(words)
        assert all(change.startswith("--set=") for change in changes)
        recipe = apply_changes(short_recipe(member(own, "mini")), [one.removeprefix("--set=") for one in changes], "")
        made.add(fingerprint(recipe))
    assert len(made) == len(claim.arms)
    for expect in claim.expects:
        assert expect.more in claim.arms
        assert expect.less in claim.arms or 0 <= float(expect.less) <= 1


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ((0.6, 0.7, 0.8), (0.5, 0.6, 0.7), "borne out; mean difference +0.1000"),
        ((0.5, 0.6, 0.7), (0.6, 0.7, 0.8), "the other way round; mean difference -0.1000"),
        ((0.6, 0.5), (0.5, 0.6), "not borne out, no clear difference; mean difference +0.0000"),
        ((0.9, 0.9, 0.9, 0.9, 0.499), (0.5,) * 5, "borne out; mean difference +0.3198"),
        ((0.6,), (0.5,), "one seed decides nothing; difference +0.1000"),
        ((), (0.5,), "not measured"),
    ],
    ids=["every seed", "reversed", "disagree", "two errors", "one seed", "nothing"],
)
def test_a_verdict_needs_every_seed_or_two_standard_errors(ours, theirs, said):
    values = {"a": dict(enumerate(ours)), "b": dict(enumerate(theirs))}
    assert f"score: a more than b: {said}" in verdict(Expect("*ore", "a", "b"), Measured("score", values))


def test_an_arm_may_be_held_against_a_guess():
    found = Measured("right", {"a": {0: 0.61, 1: 0.63, 2: 0.62}})
    assert "right: a more than 0.5: borne out; mean difference +0.1200" in verdict(Expect("right", "a", "0.5"), found)


def test_about_as_much_means_a_small_difference_or_an_unclear_one():
    expect = Expect("loss", "a", "b", equal=0.05)
    near = Measured("loss", {"a": {0: 1.01, 1: 1.02}, "b": {0: 1.0, 1: 1.0}})
    far = Measured("loss", {"a": {0: 1.21, 1: 1.22}, "b": {0: 1.0, 1: 1.0}})
    assert "borne out, within 0.05" in verdict(expect, near)
    assert "not borne out" not in verdict(expect, near)
    assert "not borne out" in verdict(expect, far)


def test_a_table_has_80_columns_and_every_arm():
    arms = ("feed_forward", "attention", "none", "all", "another")
    values = {arm: {0: 0.123456, 1: 0.987654, 2: 0.5} for arm in arms[:-1]}
    found = [Measured("correction, similar", values), Measured("parameters", {"none": {0: 5_307_138.0}})]
    lines = list(tables(arms, found))
    assert max(map(len, lines)) <= 80
    assert all(arm in "\n".join(lines) for arm in arms)
    assert "0.1235-0.9877" in "\n".join(lines)
    assert lines[-1] == "seeds: feed_forward 3, attention 3, none 3, all 3, another 0"


def test_time_that_is_up_stops_what_runs_and_begins_nothing(tmp_path):
    wish = Namespace(cut=0, task=[])
    work = Work(Bench(CLAIMS["masking"], wish, tmp_path), 1, time.monotonic() + 0.5)
    long = Job("long", ("-c", "import time; time.sleep(200)"), tmp_path / "long.json", tmp_path / "long.log", True)
    began = time.monotonic()
    assert not work.one(long)
    assert not work.one(Job("late", ("-c", "print(1)"), tmp_path / "late.json", tmp_path / "late.log", True))
    assert time.monotonic() - began < 20
    assert not long.done.exists()
    assert not (tmp_path / "late.log").exists()


def test_an_entry_is_measured_only_when_its_network_is_made(tmp_path):
    wish = Namespace(cut=0, task=[], data="data", length=64, words="", size="tiny", batch=8, tune_words="")
    for name in ("steps", "tokens", "hours", "flops"):
        setattr(wish, name, None)
    bench = Bench(CLAIMS["formats"], wish, tmp_path)
    entry = Entry("full", CLAIMS["formats"].arms["full"], 0, tmp_path / "full-0")
    Work(bench, 2, time.monotonic() + 60).all([entry])  # there is no such data: the pre-training fails
    assert "data" in (entry.folder / "network.log").read_text(encoding="utf-8")
    assert not (entry.folder / "probe-far.log").exists()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A little text, prepared."""
    folder = tmp_path_factory.mktemp("claims")
    articles = [document.text for document in peoples_daily()]
    some = [text for text, size in zip(articles, accumulate(map(len, articles)), strict=True) if size < 20_000]
    (folder / "text.txt").write_text("\n\n".join(some), encoding="utf-8")
    words = ["prepare", folder / "text.txt", "--for", "wwm", "--vocab-size", "900", "--out", folder / "data", "-j", "1"]
    assert CliRunner().invoke(app, list(map(str, words))).exit_code == 0
    return Corpus.open(folder / "data")


def test_a_part_of_a_corpus_is_a_corpus_with_whole_documents(corpus, tmp_path):
    cut(corpus, 3000, tmp_path / "cut")
    part = Corpus.open(tmp_path / "cut")
    part.verify()
    assert part.layers == corpus.layers
    assert 3000 <= part.manifest.counts.tokens < corpus.manifest.counts.tokens
    whole = {tuple(ids) for ids in _documents(corpus)}
    kept = [tuple(ids) for ids in _documents(part)]
    assert len(set(kept)) == len(kept) >= 2
    assert set(kept) <= whole


def _documents(corpus):
    for shard in corpus.shards:
        yield from (part.tolist() for part in np.split(np.asarray(shard.ids), shard.documents[1:-1]))


def test_the_border_probe_learns_from_states_and_leaves_the_network_as_it_was(corpus, monkeypatch):
    monkeypatch.setattr("claims_border.JUDGED", 2)
    learn, judge = split_heldout(corpus, 0.2)
    torch.manual_seed(0)
    model = EncoderWithHeads(member("spanbert", "tiny").network, corpus.vocab.size, 64).eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    few, more = (_border(steps, model, learn, judge, monkeypatch) for steps in (1, 20))
    assert 0 <= more["border right"] <= 1
    assert more["border loss"] < few["border loss"]
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def _border(steps, model, learn, judge, monkeypatch):
    monkeypatch.setattr("claims_border.STEPS", steps)
    return border(model, torch.device("cpu"), learn, judge, 64)


def test_who_says_every_token_again_finds_no_mistake_and_who_knows_all_finds_each(corpus, monkeypatch):
    model = EncoderWithHeads(member("bert", "tiny").network, corpus.vocab.size, 128)
    network = Opened(model, torch.device("cpu"))
    monkeypatch.setattr(Opened, "said", lambda self, example, ids: ids)
    assert correct(network, corpus, 128) == {
        "at the place, random": 0.0,
        "detection, random": 0.0,
        "correction, random": 0.0,
    }  # and no similar words: this corpus has no table of them
    monkeypatch.setattr(Opened, "said", lambda self, example, ids: example.ids)
    assert set(correct(network, corpus, 128).values()) == {1.0}
    assert far(network, corpus, 128)["far"] == 1.0
    assert far(network, corpus, 128)["far n"] > 0
    assert len(rows_of(Packed(DocumentBoundary.NEVER), corpus, 128)) > 1

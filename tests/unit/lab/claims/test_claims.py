"""Claims: every arm is a recipe that can be built, and a verdict follows its rule."""

from __future__ import annotations

import shlex
import time
from itertools import accumulate

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from unmask.api.short_run import short_recipe
from unmask.cli.main import app
from unmask.core.codec import fingerprint
from unmask.core.errors import InputError
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.holdout import split_heldout
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.text.sample_corpora import peoples_daily
from unmask.lab.claims.border import border_scores
from unmask.lab.claims.catalog import CLAIMS, Expectation
from unmask.lab.claims.jobs import ClaimJob, ClaimJobRunner, ClaimOptions, ClaimPlan, ClaimRun
from unmask.lab.claims.probe import ProbedModel, correction_scores, far_scores
from unmask.lab.claims.probe_data import fixed_rows, write_subset
from unmask.lab.claims.run import ClaimRequest
from unmask.lab.claims.verdict import Measurement, tables, verdict
from unmask.members import apply_changes, member
from unmask.nets.model import EncoderWithHeads


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
    for expect in claim.expectations:
        assert expect.higher in claim.arms
        assert expect.lower in claim.arms or 0 <= float(expect.lower) <= 1


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ((0.6, 0.7, 0.8), (0.5, 0.6, 0.7), "confirmed; mean difference +0.1000"),
        ((0.5, 0.6, 0.7), (0.6, 0.7, 0.8), "contradicted; mean difference -0.1000"),
        ((0.6, 0.5), (0.5, 0.6), "not confirmed, no clear difference; mean difference +0.0000"),
        ((0.9, 0.9, 0.9, 0.9, 0.499), (0.5,) * 5, "confirmed; mean difference +0.3198"),
        ((0.6,), (0.5,), "undecided, one seed only; difference +0.1000"),
        ((), (0.5,), "not measured"),
    ],
    ids=["every seed", "reversed", "disagree", "two errors", "one seed", "nothing"],
)
def test_a_verdict_needs_every_seed_or_two_standard_errors(ours, theirs, said):
    values = {"a": dict(enumerate(ours)), "b": dict(enumerate(theirs))}
    assert f"score: a higher than b: {said}" in verdict(Expectation("*ore", "a", "b"), Measurement("score", values))


def test_an_arm_may_be_held_against_a_guess():
    found = Measurement("right", {"a": {0: 0.61, 1: 0.63, 2: 0.62}})
    assert "right: a higher than 0.5: confirmed; mean difference +0.1200" in verdict(
        Expectation("right", "a", "0.5"), found
    )


def test_about_as_much_means_a_small_difference_or_an_unclear_one():
    expect = Expectation("loss", "a", "b", tolerance=0.05)
    near = Measurement("loss", {"a": {0: 1.01, 1: 1.02}, "b": {0: 1.0, 1: 1.0}})
    far = Measurement("loss", {"a": {0: 1.21, 1: 1.22}, "b": {0: 1.0, 1: 1.0}})
    assert "confirmed, within 0.05" in verdict(expect, near)
    assert "not confirmed" not in verdict(expect, near)
    assert "not confirmed" in verdict(expect, far)


def test_a_table_has_80_columns_and_every_arm():
    arms = ("feed_forward", "attention", "none", "all", "another")
    values = {arm: {0: 0.123456, 1: 0.987654, 2: 0.5} for arm in arms[:-1]}
    found = [Measurement("correction, similar", values), Measurement("parameters", {"none": {0: 5_307_138.0}})]
    lines = list(tables(arms, found))
    assert max(map(len, lines)) <= 80
    assert all(arm in "\n".join(lines) for arm in arms)
    assert "0.1235-0.9877" in "\n".join(lines)
    assert lines[-1] == "seeds: feed_forward 3, attention 3, none 3, all 3, another 0"


def options(out, **changes):
    return ClaimOptions(**{"data": out / "data", "out": out, "budget": {"steps": "10"}, **changes})


def test_the_time_limit_stops_what_runs_and_starts_nothing(tmp_path):
    runner = ClaimJobRunner(ClaimPlan(CLAIMS["masking"], options(tmp_path)), time.monotonic() + 0.5)
    code = ("-c", "import time; time.sleep(200)")
    long = ClaimJob("long", code, tmp_path / "long.json", tmp_path / "long.log", True)
    began = time.monotonic()
    assert not runner.run_job(long)
    late = ClaimJob("late", ("-c", "print(1)"), tmp_path / "late.json", tmp_path / "late.log", True)
    assert not runner.run_job(late)
    assert time.monotonic() - began < 20
    assert not long.done.exists()
    assert not late.log.exists()


def test_a_run_is_measured_only_when_its_network_is_finished(tmp_path):
    plan = ClaimPlan(CLAIMS["formats"], options(tmp_path, size="tiny", batch_size=8, max_parallel=2))
    run = ClaimRun("full", CLAIMS["formats"].arms["full"], 0, tmp_path / "full-0")
    ClaimJobRunner(plan, time.monotonic() + 60).run_all([run])  # there is no such corpus: the pre-training fails
    assert str(tmp_path / "data") in (run.folder / "network.log").read_text(encoding="utf-8")
    assert not (run.folder / "probe-far.log").exists()


@pytest.mark.parametrize(
    ("name", "arms", "changes", "found"),
    [
        ("spans", (), {}, "NAME=TRAIN:DEV"),
        ("sop", (), {"tasks": ("x=gone.jsonl:gone.jsonl",)}, "two files"),
        ("sop", ("sop", "cbow"), {}, "found cbow"),
        ("sop", (), {"budget": {"steps": "1", "tokens": "2"}}, "one budget"),
    ],
)
def test_a_claim_that_cannot_be_tried_is_refused(name, arms, changes, found, tmp_path):
    with pytest.raises(InputError, match=found):
        ClaimRequest(name=name, options=options(tmp_path, **changes), arms=arms).checked()


def test_the_usual_budget_is_that_of_the_claim(tmp_path):
    for name, budget in (("sop", {"tokens": "30000000"}), ("all-tokens", {"flops": "6e+14"})):
        task = f"x={__file__}:{__file__}"
        request = ClaimRequest(name=name, options=options(tmp_path, budget={}, tasks=(task,)))
        assert request.checked().options.budget == budget


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
    write_subset(corpus, 3000, tmp_path / "cut")
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
    monkeypatch.setattr("unmask.lab.claims.border.NUM_EVAL_BATCHES", 2)
    learn, judge = split_heldout(corpus, 0.2)
    torch.manual_seed(0)
    model = EncoderWithHeads(member("spanbert", "tiny").network, corpus.vocab.size, 64).eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    few, more = (_border(steps, model, learn, judge, monkeypatch) for steps in (1, 20))
    assert 0 <= more["border accuracy"] <= 1
    assert more["border loss"] < few["border loss"]
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def _border(steps, model, learn, judge, monkeypatch):
    monkeypatch.setattr("unmask.lab.claims.border.NUM_STEPS", steps)
    return border_scores(model, torch.device("cpu"), learn, judge, 64)


def test_copying_the_input_corrects_nothing_and_the_truth_corrects_everything(corpus, monkeypatch):
    model = EncoderWithHeads(member("bert", "tiny").network, corpus.vocab.size, 128)
    network = ProbedModel(model, torch.device("cpu"))
    monkeypatch.setattr(ProbedModel, "predicted_tokens", lambda self, rows, ids: ids)
    assert correction_scores(network, corpus, 128) == {
        "accuracy, random": 0.0,
        "detection, random": 0.0,
        "correction, random": 0.0,
    }  # and no similar words: this corpus has no table of them
    monkeypatch.setattr(ProbedModel, "predicted_tokens", lambda self, rows, ids: rows.ids)
    assert set(correction_scores(network, corpus, 128).values()) == {1.0}
    assert far_scores(network, corpus, 128)["far"] == 1.0
    assert far_scores(network, corpus, 128)["far n"] > 0
    assert len(fixed_rows(Packed(DocumentBoundary.NEVER), corpus, 128)) > 1

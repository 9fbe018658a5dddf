"""A frozen network reads every row once, what it made of it is kept while it is needed, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_policy import ALONE, CPU, SETTINGS, Stop, equipped, stop_at, tuned, tuning

import unmask.finetuning.feature_cache
from unmask.finetuning.data.encoded_dataset import NO_CACHE
from unmask.finetuning.feature_cache import FeatureExtractor, with_feature_cache
from unmask.finetuning.methods.frozen import FrozenEncoder, ScalarMixing
from unmask.finetuning.methods.protocol import CachedLayers
from unmask.nets.batch.batch import collate
from unmask.nets.encoder import TransformerEncoder
from unmask.train.run_config import RunConfig
from unmask.train.rundir.folder import lock_run

RUN = RunConfig(device=CPU)
LONG = replace(SETTINGS, epochs=4)


@pytest.fixture
def tokens_read(monkeypatch):
    """How many tokens the trunk reads, pass by pass."""
    read: list[int] = []
    forward = TransformerEncoder.forward

    def counted(trunk, tokens):
        read.append(len(tokens.ids_T))
        return forward(trunk, tokens)

    monkeypatch.setattr(TransformerEncoder, "forward", counted)
    return read


@pytest.mark.parametrize("policy", [FrozenEncoder(), ScalarMixing()], ids=str)
def test_the_trunk_reads_every_row_once(tmp_path, policy, tokens_read):
    made = tuning(tmp_path, policy, LONG)
    course = made.encode()
    tuned(made, tmp_path / "run")
    assert sum(tokens_read) == len(course.train.rows.ids) + len(course.dev.rows.ids)


@pytest.mark.parametrize("policy", [FrozenEncoder(), ScalarMixing()], ids=str)
def test_the_scores_are_those_of_a_run_that_keeps_nothing(tmp_path, policy):
    kept, again = tuning(tmp_path, policy, LONG), tuning(tmp_path, replace(policy, cache_features=False), LONG)
    a, b = tuned(kept, tmp_path / "kept"), tuned(again, tmp_path / "again")
    for name, tensor in a.learner.named_weights().items():
        assert torch.allclose(tensor, b.learner.named_weights()[name], atol=1e-5), name
    said, same = a.predict(kept.data.dev), b.predict(kept.data.dev)
    assert [one.to_json() for one in said] == [one.to_json() for one in same]


def test_what_is_too_large_lies_in_a_file_that_is_gone_afterwards(tmp_path, monkeypatch):
    made = tuning(tmp_path, ScalarMixing())
    inside = tuned(made, tmp_path / "inside").learner
    monkeypatch.setattr(unmask.finetuning.feature_cache, "MAX_BYTES_IN_MEMORY", 0)
    seen: list[list[str]] = []
    outside = tuned(made, tmp_path / "outside", (lambda line: seen.append(files(tmp_path / "outside")),)).learner
    assert all(len(names) == 2 for names in seen)
    assert files(tmp_path / "outside") == []
    for name, tensor in inside.named_weights().items():
        assert torch.equal(tensor, outside.named_weights()[name]), name


def files(folder):
    return [path.name for path in folder.glob(".*states*")]


def test_nothing_is_left_behind_by_a_run_that_fails_or_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(unmask.finetuning.feature_cache, "MAX_BYTES_IN_MEMORY", 0)
    with pytest.raises(Stop):
        tuned(tuning(tmp_path, FrozenEncoder()), tmp_path / "run", (stop_at(2),))
    assert files(tmp_path / "run") == []
    left = tmp_path / "run" / ".train.states.4711"
    left.write_bytes(b"of a killed process")
    (tmp_path / "run" / "run.json").write_text("{}")
    with lock_run(tmp_path / "run"):
        assert not left.exists()


@pytest.mark.parametrize("first_only", [True, False])
@pytest.mark.parametrize(("recall", "layers"), [(CachedLayers.LAST, 1), (CachedLayers.ALL, 4)])
def test_states_are_those_of_the_trunk(tmp_path, recall, layers, first_only):
    exercise = tuning(tmp_path, FrozenEncoder()).encode().train
    learner = equipped(FrozenEncoder()).eval()
    known = FeatureExtractor(learner, recall, first_only, RUN)(exercise, tmp_path / "states")
    rows = np.array([5, 0, 23, 5])
    there, fresh = collate(known.take(rows)), collate(exercise.take(rows))
    with torch.no_grad():
        states = learner.network(fresh.tokens).layers[-layers:]
    expected = [layer[fresh.row_starts_B] if first_only else layer for layer in states]
    assert len(there.cached_states) == layers
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(there.cached_states, expected, strict=True))
    assert torch.equal(there.tokens.ids_T[there.row_starts_B], fresh.tokens.ids_T[fresh.row_starts_B])
    assert torch.equal(there.targets[0].value, fresh.targets[0].value)
    assert len(there.tokens.ids_T) == (4 if first_only else len(fresh.tokens.ids_T))
    with torch.no_grad():
        a, b = (learner(batch, (tuning(tmp_path, FrozenEncoder()).data.task.objective,))[0] for batch in (there, fresh))
    assert float(a.total) == pytest.approx(float(b.total), rel=1e-5)


def test_progress_is_told_row_by_row(tmp_path):
    course, told = tuning(tmp_path, FrozenEncoder()).encode(), []
    with with_feature_cache(course, equipped(FrozenEncoder()), CachedLayers.LAST, RUN, tmp_path, told.append) as known:
        assert known.train.feature_cache is not NO_CACHE
        assert known.dev.feature_cache is not NO_CACHE
    assert told == sorted(told)
    assert told[-1] == 24 + 12


def test_a_policy_that_moves_the_trunk_keeps_nothing(tmp_path):
    course = tuning(tmp_path, FrozenEncoder()).encode()
    with with_feature_cache(course, equipped(FrozenEncoder()), CachedLayers.NOTHING, RUN, tmp_path) as same:
        assert same is course


def test_a_checkpoint_of_a_frozen_network_is_small(tmp_path):
    made = tuning(tmp_path, FrozenEncoder())
    made.train(made.encode(), RunConfig(device=CPU), ALONE, tmp_path)
    size = sum(path.stat().st_size for path in tmp_path.glob("checkpoints/*/model.safetensors"))
    assert 0 < size < 4 * sum(parameter.numel() for parameter in made.model.network.parameters()) / 4

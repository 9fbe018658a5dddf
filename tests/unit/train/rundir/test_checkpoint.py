"""Checkpoints: whole or not there, compared with their digests, the last ones and the best kept."""

import json
import math

import pytest
import torch

from unmask.core.errors import InputError
from unmask.train.rundir.checkpoint import (
    MODEL,
    OPTIMIZER,
    STATE,
    BestEval,
    RunState,
    checkpoint_name,
    list_checkpoints,
    prune_checkpoints,
    read_state,
    read_tensors,
    remove_partial,
    save_checkpoint,
)
from unmask.train.schedule import RunProgress

NO_BEST = BestEval()


def save(folder, step, best=NO_BEST):
    tensors = {"a": torch.full((3, 2), float(step)), "b": torch.arange(4)}
    state = RunState(RunProgress(step, 100 * step, 0.1 * step), best)
    return save_checkpoint(folder, tensors, {"m/a": torch.ones(3, 2)}, state)


def steps(folder):
    return [int(path.name.rpartition("-")[2]) for path in list_checkpoints(folder)]


def test_what_was_saved_comes_back(tmp_path):
    made = save(tmp_path, 12, BestEval(1.25, 8))
    assert made.name == "step-000000012"
    assert read_state(made) == RunState(RunProgress(12, 1200, 0.1 * 12), BestEval(1.25, 8))
    model = read_tensors(made, MODEL)
    assert torch.equal(model["a"], torch.full((3, 2), 12.0))
    assert torch.equal(model["b"], torch.arange(4))
    assert list(read_tensors(made, OPTIMIZER)) == ["m/a"]
    assert sorted(path.name for path in made.iterdir()) == [MODEL, OPTIMIZER, STATE]


def test_before_the_first_trial_there_is_no_best(tmp_path):
    made = save(tmp_path, 1)
    assert read_state(made).best == BestEval(math.inf, 0)
    assert json.loads((made / STATE).read_text(), parse_constant=pytest.fail)["best"] == {}


def test_a_tensor_that_is_a_view_is_saved_as_what_it_shows(tmp_path):
    whole = torch.arange(6.0).view(2, 3)
    made = save_checkpoint(tmp_path, {"turned": whole.T}, {}, RunState())
    assert torch.equal(read_tensors(made, MODEL)["turned"], whole.T)


def test_the_last_ones_and_the_best_are_kept(tmp_path):
    for step in (2, 4, 6, 8, 10):
        save(tmp_path, step)
    prune_checkpoints(tmp_path, keep=2, best=4)
    assert steps(tmp_path) == [4, 8, 10]
    prune_checkpoints(tmp_path, keep=2, best=10)
    assert steps(tmp_path) == [8, 10]
    prune_checkpoints(tmp_path, keep=1, best=0)
    assert steps(tmp_path) == [10]
    assert not list(tmp_path.glob(".*"))


def test_the_same_step_is_saved_anew(tmp_path):
    save(tmp_path, 5, BestEval(2.0, 5))
    made = save(tmp_path, 5, BestEval(1.0, 5))
    assert read_state(made).best.loss == 1.0
    assert steps(tmp_path) == [5]


def test_checkpoints_are_sorted_by_step_and_parts_are_none(tmp_path):
    for step in (1_000_000_000, 7, 999):
        save(tmp_path, step)
    (tmp_path / ".step-000000008.77").mkdir()
    (tmp_path / "step-notes.txt").write_text("mine")
    assert steps(tmp_path) == [7, 999, 1_000_000_000]
    remove_partial(tmp_path)
    assert not (tmp_path / ".step-000000008.77").exists()
    assert (tmp_path / "step-notes.txt").exists()


@pytest.mark.parametrize("name", [MODEL, OPTIMIZER, STATE])
def test_every_flipped_byte_is_noticed(tmp_path, name):
    save(tmp_path, 3)
    made = save(tmp_path, 4)
    raw = (made / name).read_bytes()
    for place in range(0, len(raw), 7):
        (made / name).write_bytes(raw[:place] + bytes([raw[place] ^ 16]) + raw[place + 1 :])
        with pytest.raises(InputError, match=r"is damaged.* start the same command to go on from step-000000003"):
            read_state(made)
    (made / name).write_bytes(raw)
    assert read_state(made).progress.step == 4


@pytest.mark.parametrize("name", [MODEL, OPTIMIZER, STATE])
def test_a_file_that_is_cut_or_gone_is_damage(tmp_path, name):
    made = save(tmp_path, 4)
    (made / name).write_bytes((made / name).read_bytes()[:-3])
    with pytest.raises(InputError, match="start the same command to begin again"):
        read_state(made)
    (made / name).unlink()
    with pytest.raises(InputError, match="is damaged"):
        read_state(made)
    if name != OPTIMIZER:
        with pytest.raises(InputError, match="is damaged"):
            read_tensors(made, MODEL)


def test_names_sort_as_numbers():
    assert checkpoint_name(9) < checkpoint_name(10) < checkpoint_name(999_999_999)

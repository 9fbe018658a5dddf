"""What a run will cost: near the truth, and without a trace in what is trained."""

import pytest
import torch
from little_course import ALONE, recipe, run_of, training

import unmask.train.cost_estimate as estimating
from unmask.nets.encoder import num_parameters
from unmask.train.batches.recipe_batches import RunPosition
from unmask.train.build_step import build_step_runner
from unmask.train.cost_estimate import CostProbe, _measure_captured, _MeasuredStep, estimate_cost
from unmask.train.loop import train
from unmask.train.rundir.run_writer import RECORD, read_record
from unmask.train.schedule import StepBudget, TimeBudget, TokenBudget
from unmask.train.step import DeviceBatch

PROBES = [CostProbe(RunPosition(0, 0.45), 0.9), CostProbe(RunPosition(0, 0.95), 0.1)]


def made(budget):
    return training(budget, recipe((0.9, 0.1)))


@pytest.mark.parametrize("budget", [StepBudget(1000), TokenBudget(60_000), TimeBudget(0.01)])
def test_the_budget_itself_is_not_guessed(budget):
    found = estimate_cost(made(budget), run_of(), ALONE, PROBES)
    exact = {StepBudget: found.steps, TokenBudget: found.tokens, TimeBudget: found.seconds / 3600}[type(budget)]
    assert exact == pytest.approx(budget.count)
    assert found.num_parameters == num_parameters(made(budget).model)
    assert (
        min(found.steps, found.tokens, found.seconds, found.tokens_per_second, found.memory_bytes, found.disk_bytes) > 0
    )


def test_tokens_are_near_what_a_run_takes(tmp_path):
    found = estimate_cost(made(StepBudget(30)), run_of(), ALONE, PROBES)
    train(made(StepBudget(30)), run_of(), ALONE, tmp_path)
    last = [line for line in read_record(tmp_path / RECORD) if line["kind"] == "step"][-1]
    assert found.tokens == pytest.approx(last["tokens"], rel=0.15)


@pytest.mark.parametrize("logistics", [{}, {"cuda_graphs": True, "max_in_flight": 1}], ids=["plain", "recorded"])
def test_it_changes_no_weight_no_draw_and_leaves_no_gradient(logistics):
    guessed, fresh = made(StepBudget(10)), made(StepBudget(10)).model
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    estimate_cost(guessed, run_of(**logistics), ALONE, PROBES)
    assert torch.equal(torch.rand(3), expected)
    for name, parameter in guessed.model.named_parameters():
        assert torch.equal(parameter, fresh.get_parameter(name)), name
        assert parameter.grad is None


def test_a_training_after_an_estimate_is_the_same_training(tmp_path):
    guessed = made(StepBudget(6))
    estimate_cost(guessed, run_of(), ALONE, PROBES)
    train(guessed, run_of(), ALONE, tmp_path / "guessed")
    train(made(StepBudget(6)), run_of(), ALONE, tmp_path / "plain")
    losses = [[line.get("loss") for line in read_record(tmp_path / name / RECORD)] for name in ("guessed", "plain")]
    assert losses[0] == losses[1]


def test_weights_that_are_not_finite_are_left_to_the_run():
    broken = made(StepBudget(6))
    with torch.no_grad():
        broken.model.network.embed.norm.weight[0] = float("nan")
    estimate_cost(broken, run_of(), ALONE, PROBES)
    assert all(parameter.grad is None for parameter in broken.model.parameters())


class Clock:
    """A clock on which steps of a worker take what they are said to take."""

    def __init__(self, seconds):
        self.seconds, self.now = iter(seconds), 0.0

    def perf_counter(self):
        return self.now

    def tick(self):
        self.now += next(self.seconds)


@pytest.mark.parametrize(
    ("several", "seconds", "expected"),
    [
        # Twice in vain, for what is made once; then with and without noise: 2 s for gradients, and 1 s for a move.
        (2, [90, 90, 90, 90, 3, 5, 3, 5, 3, 5], (2.0, 1.0)),
        (4, [90, 90, 90, 90, 3, 9, 3, 9, 3, 9], (2.0, 1.0)),
        (4, [90, 90, 90, 90, 8, 9, 3, 19, 4, 17], (2.0, 1.0)),
        (4, [90, 90, 90, 90, 3, 3, 3, 3, 3, 3], (0.3, 2.7)),
        (2, [90, 90, 90, 90, 3, 9, 3, 9, 3, 9], (3.0, 0.0)),
        (1, [90, 90, 3, 8, 4], (3.0, 0.0)),
    ],
)
def test_a_recorded_step_is_told_apart_by_its_quickest_times(several, seconds, expected, monkeypatch):
    clock = Clock(seconds)
    monkeypatch.setattr(estimating, "time", clock)
    monkeypatch.setattr(estimating, "_synchronize", lambda device: clock.tick())
    worker, loaded = recorded(made(StepBudget(4)))
    assert _measure_captured(worker, loaded, several) == pytest.approx(expected)


def test_a_step_of_many_micro_batches_takes_as_many_times_their_gradients(monkeypatch):
    """4 of 2 s and a move of 1 s."""
    clock = Clock([90, 90, 90, 90, 3, 9, 3, 9, 3, 9])
    monkeypatch.setattr(estimating, "time", clock)
    monkeypatch.setattr(estimating, "_synchronize", lambda device: clock.tick())
    begun = training(StepBudget(4), recipe(batch=16))
    worker, _ = recorded(begun, micro=64)
    pieces = begun.source.batch(RunPosition(0, 0.5), ALONE.rank_split(64)).instances
    assert len(pieces) >= 4
    part = _MeasuredStep.measure(worker, begun, CostProbe(RunPosition(0, 0.5), 1.0), ALONE)
    assert part.seconds == pytest.approx(2.0 * part.tokens / len(pieces[0].inputs.ids) + 1.0)


def recorded(begun, micro=4096):
    """A worker whose steps are recorded, and something to learn from."""
    run = run_of(cuda_graphs=True, max_in_flight=1, microbatch_tokens=micro)
    worker = build_step_runner(begun.model, begun.optim, False, 0, run, ALONE)
    assert worker.graph_cache
    return worker, DeviceBatch.of(begun.source.eval_batches()[0], run.device, run.has_few_shapes)


def test_a_recorded_run_is_guessed_near_a_plain_one():
    plain, recorded = (
        estimate_cost(made(StepBudget(40)), run, ALONE, PROBES)
        for run in (run_of(), run_of(cuda_graphs=True, max_in_flight=1))
    )
    assert recorded.tokens == plain.tokens
    assert plain.seconds / 5 < recorded.seconds < plain.seconds * 5


def test_larger_batches_and_more_checkpoints_cost_more():
    small, large = (
        estimate_cost(training(StepBudget(10), recipe(batch=size)), run_of(), ALONE, PROBES[:1]) for size in (2, 32)
    )
    assert large.tokens > 10 * small.tokens
    kept = [
        estimate_cost(made(StepBudget(10)), run_of(keep_checkpoints=keep), ALONE, PROBES).disk_bytes for keep in (1, 9)
    ]
    assert kept[1] == 5 * kept[0]

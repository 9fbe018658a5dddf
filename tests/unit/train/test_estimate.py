"""What a run will cost: near the truth, and without a trace in what is trained."""

import pytest
import torch
from little_course import ALONE, recipe, run_of, training

import unmask.train.estimate as estimating
from unmask.nets.transformer import count
from unmask.train.budget import Hours, Steps, Tokens
from unmask.train.course import Moment
from unmask.train.estimate import Probe, _Part, _recorded, estimate
from unmask.train.loop import train
from unmask.train.record import RECORD, read_record
from unmask.train.step import Loaded
from unmask.train.worker import make_worker

PROBES = [Probe(Moment(0, 0.45), 0.9), Probe(Moment(0, 0.95), 0.1)]


def made(budget):
    return training(budget, recipe((0.9, 0.1)))


@pytest.mark.parametrize("budget", [Steps(1000), Tokens(60_000), Hours(0.01)])
def test_the_budget_itself_is_not_guessed(budget):
    found = estimate(made(budget), run_of(), ALONE, PROBES)
    exact = {Steps: found.steps, Tokens: found.tokens, Hours: found.seconds / 3600}[type(budget)]
    assert exact == pytest.approx(budget.count)
    assert found.parameters == count(made(budget).learner)
    assert min(found.steps, found.tokens, found.seconds, found.tokens_per_second, found.memory, found.disk) > 0


def test_tokens_are_near_what_a_run_takes(tmp_path):
    found = estimate(made(Steps(30)), run_of(), ALONE, PROBES)
    train(made(Steps(30)), run_of(), ALONE, tmp_path)
    last = [line for line in read_record(tmp_path / RECORD) if line["kind"] == "step"][-1]
    assert found.tokens == pytest.approx(last["tokens"], rel=0.15)


@pytest.mark.parametrize("logistics", [{}, {"graphs": True, "queue": 1}], ids=["plain", "recorded"])
def test_it_changes_no_weight_no_draw_and_leaves_no_gradient(logistics):
    guessed, fresh = made(Steps(10)), made(Steps(10)).learner
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    estimate(guessed, run_of(**logistics), ALONE, PROBES)
    assert torch.equal(torch.rand(3), expected)
    for name, parameter in guessed.learner.named_parameters():
        assert torch.equal(parameter, fresh.get_parameter(name)), name
        assert parameter.grad is None


def test_a_training_after_an_estimate_is_the_same_training(tmp_path):
    guessed = made(Steps(6))
    estimate(guessed, run_of(), ALONE, PROBES)
    train(guessed, run_of(), ALONE, tmp_path / "guessed")
    train(made(Steps(6)), run_of(), ALONE, tmp_path / "plain")
    losses = [[line.get("loss") for line in read_record(tmp_path / name / RECORD)] for name in ("guessed", "plain")]
    assert losses[0] == losses[1]


def test_weights_that_are_not_finite_are_left_to_the_run():
    broken = made(Steps(6))
    with torch.no_grad():
        broken.learner.trunk.embed.norm.weight[0] = float("nan")
    estimate(broken, run_of(), ALONE, PROBES)
    assert all(parameter.grad is None for parameter in broken.learner.parameters())


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
    monkeypatch.setattr(estimating, "_settle", lambda device: clock.tick())
    worker, loaded = recorded(made(Steps(4)))
    assert _recorded(worker, loaded, several) == pytest.approx(expected)


def test_a_step_of_many_micro_batches_takes_as_many_times_their_gradients(monkeypatch):
    """4 of 2 s and a move of 1 s."""
    clock = Clock([90, 90, 90, 90, 3, 9, 3, 9, 3, 9])
    monkeypatch.setattr(estimating, "time", clock)
    monkeypatch.setattr(estimating, "_settle", lambda device: clock.tick())
    begun = training(Steps(4), recipe(batch=16))
    worker, _ = recorded(begun, micro=64)
    pieces = begun.course.lesson(Moment(0, 0.5), ALONE.crew(64)).instances
    assert len(pieces) >= 4
    part = _Part.measured(worker, begun, Probe(Moment(0, 0.5), 1.0), ALONE)
    assert part.seconds == pytest.approx(2.0 * part.tokens / len(pieces[0].inputs.ids) + 1.0)


def recorded(begun, micro=4096):
    """A worker whose steps are recorded, and something to learn from."""
    run = run_of(graphs=True, queue=1, micro=micro)
    worker = make_worker(begun.learner, begun.descent, False, 0, run, ALONE)
    assert worker.repeats
    return worker, Loaded.of(begun.course.trial()[0], run.device, run.fixed)


def test_a_recorded_run_is_guessed_near_a_plain_one():
    plain, recorded = (
        estimate(made(Steps(40)), run, ALONE, PROBES) for run in (run_of(), run_of(graphs=True, queue=1))
    )
    assert recorded.tokens == plain.tokens
    assert plain.seconds / 5 < recorded.seconds < plain.seconds * 5


def test_larger_batches_and_more_checkpoints_cost_more():
    small, large = (estimate(training(Steps(10), recipe(batch=size)), run_of(), ALONE, PROBES[:1]) for size in (2, 32))
    assert large.tokens > 10 * small.tokens
    kept = [estimate(made(Steps(10)), run_of(keep=keep), ALONE, PROBES).disk for keep in (1, 9)]
    assert kept[1] == 5 * kept[0]

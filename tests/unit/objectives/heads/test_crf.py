"""Chains of classes against an oracle that tries every path."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import torch

from unmask.objectives.heads.crf import Emissions, Transitions, log_partition, path_scores, viterbi

CLASSES, LENGTHS = 3, (4, 1, 0, 3)


def drawn(seed: int = 0) -> tuple[torch.Tensor, Transitions]:
    draw = torch.Generator().manual_seed(seed)
    shapes = ((sum(LENGTHS), CLASSES), (CLASSES,), (CLASSES, CLASSES), (CLASSES,))
    scores_PC, *steps = (torch.randn(*shape, generator=draw, dtype=torch.float64) for shape in shapes)
    return scores_PC, Transitions(*steps)


def every_path(scores_LC: torch.Tensor, steps: Transitions) -> dict[tuple[int, ...], float]:
    """The score of each path through one row, written out."""
    found = {}
    for path in product(range(CLASSES), repeat=len(scores_LC)):
        score = float(steps.start_C[path[0]] + steps.end_C[path[-1]])
        score += sum(float(scores_LC[place, one]) for place, one in enumerate(path))
        score += sum(float(steps.transition_CC[a, b]) for a, b in pairwise(path))
        found[path] = score
    return found


def rows_of(values: torch.Tensor) -> list[torch.Tensor]:
    return [row for row in values.split(LENGTHS) if len(row)]


@pytest.mark.parametrize("seed", range(5))
def test_sums_and_best_paths_are_those_of_all_paths(seed):
    scores_PC, steps = drawn(seed)
    chains = Emissions.from_flat(scores_PC, LENGTHS)
    every = [every_path(row, steps) for row in rows_of(scores_PC)]
    sums = [torch.tensor(list(paths.values())).logsumexp(0) for paths in every]
    assert log_partition(chains, steps).tolist() == pytest.approx([float(one) for one in sums])
    best = [one for paths in every for one in max(paths, key=paths.__getitem__)]
    assert viterbi(chains, steps).tolist() == best


@pytest.mark.parametrize("seed", range(3))
def test_the_score_of_a_path_is_the_sum_of_its_steps(seed):
    scores_PC, steps = drawn(seed)
    chains = Emissions.from_flat(scores_PC, LENGTHS)
    path_P = torch.randint(CLASSES, (sum(LENGTHS),), generator=torch.Generator().manual_seed(seed))
    wanted = [
        every_path(row, steps)[tuple(path.tolist())]
        for row, path in zip(rows_of(scores_PC), rows_of(path_P), strict=True)
    ]
    assert path_scores(chains, chains.pad(path_P), steps).tolist() == pytest.approx(wanted)


def test_barred_steps_are_never_taken_and_the_rest_is_best():
    allowed = (
        torch.tensor([True, True, False]),
        torch.tensor([[True, True, False], [True, True, True], [False, False, True]]),
        torch.tensor([True, False, True]),
    )
    for seed in range(20):
        scores_PC, steps = drawn(seed)
        barred = steps.masked(*allowed)
        said = rows_of(viterbi(Emissions.from_flat(scores_PC, LENGTHS), barred))
        for row, path in zip(rows_of(scores_PC), said, strict=True):
            paths = every_path(row, barred)
            assert tuple(path.tolist()) == max(paths, key=paths.__getitem__)
            assert paths[tuple(path.tolist())] > -torch.inf


def test_free_steps_choose_each_class_by_itself():
    scores_PC, _ = drawn()
    found = viterbi(Emissions.from_flat(scores_PC.float(), LENGTHS), Transitions.zeros(CLASSES))
    assert found.tolist() == scores_PC.argmax(1).tolist()


def test_gradients_are_the_difference_between_expected_and_true_counts():
    """They are finite, also for rows of one place, and sum to 0 over the classes of each place."""
    scores_PC, steps = drawn()
    parts = [part.requires_grad_() for part in (scores_PC, *steps.tensors)]
    chains = Emissions.from_flat(scores_PC, LENGTHS)
    path_BL = chains.pad(torch.zeros(sum(LENGTHS), dtype=torch.int64))
    (log_partition(chains, steps) - path_scores(chains, path_BL, steps)).sum().backward()
    assert all(part.grad is not None and part.grad.isfinite().all() for part in parts)
    assert scores_PC.grad is not None
    assert scores_PC.grad.sum(1).abs().max() < 1e-12
    assert (scores_PC.grad[:, 0] < 0).all()  # the true class should score higher


def test_very_unlike_scores_stay_finite():
    scores_PC = torch.tensor([[1e4, -1e4, 0.0]] * sum(LENGTHS))
    steps = Transitions.zeros(CLASSES)
    assert log_partition(Emissions.from_flat(scores_PC, LENGTHS), steps).tolist() == [4e4, 1e4, 3e4]

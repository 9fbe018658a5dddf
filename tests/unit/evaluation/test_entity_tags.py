"""Entities read from tags, against seqeval on random sequences that break every rule, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from seqeval import metrics as peer
from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support
from seqeval.scheme import IOB2, IOBES

from unmask.evaluation.metrics.tagging import (
    Entity,
    ScoringScheme,
    entities,
    metrics_by_type,
    scoring_scheme_for,
    tagging_baseline,
    tagging_metrics,
)

BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-a-b", "I-a-b"]
BIOES = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC"))]
UNTYPED = ["O", "B", "I", "E", "S"]


def rows(draw: np.random.Generator, tags: list[str], lengths: list[int]) -> list[list[str]]:
    return [[tags[i] for i in draw.integers(0, len(tags), length)] for length in lengths]


@pytest.mark.parametrize("tags", [BIO, BIOES, UNTYPED])
def test_thousands_of_random_sequences_as_seqeval_reads_them(tags: list[str]):
    for row in rows(np.random.default_rng(len(tags)), tags, [7] * 1500):
        assert entities(row, ScoringScheme.CONLL) == [Entity(*found) for found in get_entities(row)]


@pytest.mark.parametrize(
    ("tags", "scheme", "theirs"),
    [
        (BIO, ScoringScheme.CONLL, {}),
        (BIOES, ScoringScheme.CONLL, {}),
        (BIO, ScoringScheme.STRICT_BIO, {"mode": "strict", "scheme": IOB2}),
        (BIOES, ScoringScheme.STRICT_BIOES, {"mode": "strict", "scheme": IOBES}),
    ],
)
def test_random_scores_as_seqeval(tags: list[str], scheme: ScoringScheme, theirs: dict[str, object]):
    draw = np.random.default_rng(3)
    for _ in range(150):
        lengths = draw.integers(1, 9, 8).tolist()
        truth, said = rows(draw, tags, lengths), rows(draw, tags, lengths)
        for row, near in zip(truth, said, strict=True):  # half of the answers are right, so that some entities are
            near[: len(row) // 2] = row[: len(row) // 2]
        scores = tagging_metrics(truth, said, scheme)
        assert scores["accuracy"] == pytest.approx(peer.accuracy_score(truth, said))
        for name, score in (("f1", peer.f1_score), ("precision", peer.precision_score), ("recall", peer.recall_score)):
            assert scores[f"entity_{name}"] == pytest.approx(score(truth, said, zero_division=0, **theirs))
        macro = peer.f1_score(truth, said, average="macro", zero_division=0, **theirs)
        assert scores["entity_macro_f1"] == pytest.approx(macro)


def test_each_type_as_seqeval():
    draw = np.random.default_rng(4)
    truth, said = rows(draw, BIO, [5] * 200), rows(draw, BIO, [5] * 200)
    precision, recall, f1, _ = precision_recall_fscore_support(truth, said, average=None)
    found = metrics_by_type(truth, said, ScoringScheme.CONLL)
    assert list(found) == ["LOC", "PER", "a-b"]
    assert [each["entity_precision"] for each in found.values()] == pytest.approx(precision.tolist())
    assert [each["entity_recall"] for each in found.values()] == pytest.approx(recall.tolist())
    assert [each["entity_f1"] for each in found.values()] == pytest.approx(f1.tolist())


@pytest.mark.parametrize(
    ("tags", "conll", "bio"),
    [
        ("I-PER I-PER", [("PER", 0, 1)], []),
        ("B-PER I-LOC", [("PER", 0, 0), ("LOC", 1, 1)], [("PER", 0, 0)]),
        ("I-PER B-PER", [("PER", 0, 0), ("PER", 1, 1)], [("PER", 1, 1)]),  # the one B- that IOB1 writes
        ("O I-LOC O", [("LOC", 1, 1)], []),
        ("", [], []),
    ],
)
def test_broken_sequences(tags: str, conll: list[tuple[str, int, int]], bio: list[tuple[str, int, int]]):
    assert entities(tags.split(), ScoringScheme.CONLL) == conll
    assert entities(tags.split(), ScoringScheme.STRICT_BIO) == bio


def test_an_entity_does_not_run_on_into_the_next_row():
    scores = tagging_metrics([["B-PER"], ["I-PER"]], [["B-PER"], ["I-PER"]], ScoringScheme.CONLL)
    assert scores["entity_f1"] == 1
    assert tagging_metrics([["B-PER"], ["O"]], [["B-PER"], ["I-PER"]], ScoringScheme.CONLL)["entity_precision"] == 0.5


def test_other_letters_for_the_same_scheme():
    written = ["B-X", "M-X", "E-X", "S-X", "O"]
    assert entities(written, ScoringScheme.STRICT_BIOES) == [("X", 0, 2), ("X", 3, 3)]
    assert entities(["B-X", "L-X", "U-X"], ScoringScheme.STRICT_BIOES) == [("X", 0, 1), ("X", 2, 2)]
    assert entities(["B", "M", "E", "S"], ScoringScheme.CONLL) == [("_", 0, 2), ("_", 3, 3)]


def test_tags_without_entities_are_judged_one_by_one():
    assert scoring_scheme_for(["B-PER", "O", "I-PER"]) is ScoringScheme.CONLL
    assert scoring_scheme_for(["NN", "VB", "B-PER"]) is ScoringScheme.FREE
    assert scoring_scheme_for(["O"]) is ScoringScheme.FREE
    assert tagging_metrics([["NN", "VB", "NN"]], [["NN", "NN", "NN"]], ScoringScheme.FREE) == {
        "accuracy": pytest.approx(2 / 3)
    }


def test_without_entities_the_scores_are_those_of_the_script():
    assert tagging_metrics([["O", "O"]], [["O", "O"]], ScoringScheme.CONLL) == {
        "accuracy": 1,
        "entity_f1": 0,
        "entity_precision": 0,
        "entity_recall": 0,
        "entity_macro_f1": 0,
    }


def test_the_baseline_says_the_most_frequent_tag():
    scores = tagging_baseline([["O", "O", "B-X"]], [["O", "B-X"], ["O"]], ScoringScheme.CONLL)
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["entity_f1"] == 0

"""Ranking files: which rows are a group, what is learned from, and what is refused with its line."""

from __future__ import annotations

from collections import Counter

import pytest
from little_task import write_lines

from unmask.core.errors import InputError
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE
from unmask.finetuning.data.ranking import RankingExample, read_ranking
from unmask.finetuning.task_data import infer_task_type, load_task_data
from unmask.finetuning.task_options import TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.finetuning.tasks.ranking import RankingPrediction, RankingTask, split_group

WISH = TaskOptions(task_type=TaskType.RANKING)


def test_rows_with_the_same_query_are_a_group_wherever_they_stand(tmp_path):
    rows = [("q1", "a", 1), ("q2", "b", 0), ("q1", "c", 0), ("q2", "d", 2)]
    told = [{"query": query, "title": title, "label": label} for query, title, label in rows]
    path = write_lines(tmp_path / "a.jsonl", told)
    sheet, choice = read_ranking(path)
    assert sheet.examples == (RankingExample("q1", ("a", "c"), (1, 0)), RankingExample("q2", ("b", "d"), (0, 2)))
    assert [where.split(":")[-1] for where in sheet.source_lines] == ["1", "2"]
    assert read_ranking(path, choice, truths=False)[0].examples[1] == RankingExample("q2", ("b", "d"))
    assert infer_task_type(path, NO_COLUMN_CHOICE) is TaskType.CLASSIFICATION  # ranking has to be asked for


def test_a_line_may_hold_a_query_with_all_its_candidates(tmp_path):
    inside = [{"text": "a", "label": True}, {"text": "b", "label": False}]
    sheet, choice = read_ranking(write_lines(tmp_path / "a.jsonl", [{"query": "q", "candidates": inside}]))
    assert sheet.examples == (RankingExample("q", ("a", "b"), (1, 0)),)
    assert choice.texts == ("query", "text")
    twice = write_lines(tmp_path / "b (1).jsonl", [{"query": "q", "candidates": inside}] * 2)
    assert len(read_ranking(twice)[0]) == 2  # a line is a question: answers stay beside it


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"question": "q", "answer": "a", "label": "good"}, "a.jsonl:2: the label 'good' is no relevance"),
        ({"question": "q", "answer": "a", "label": -1}, "a.jsonl:2: the label '-1' is no relevance"),
        ({"question": "q", "answer": "a", "label": float("nan")}, "a.jsonl:2: the label 'nan' is no relevance"),
        ({"question": "q", "answer": "a"}, "a.jsonl:2: the label is missing"),
        ({"question": "q", "label": 1}, "a.jsonl:2: there is no column 'answer'"),
    ],
)
def test_what_cannot_be_ranked_is_refused_with_its_line(tmp_path, row, complaint):
    first = {"question": "q", "answer": "a", "label": 1}
    with pytest.raises(InputError, match=complaint):
        read_ranking(write_lines(tmp_path / "a.jsonl", [first, row]))


def test_ranking_needs_two_texts(tmp_path):
    with pytest.raises(InputError, match="needs a query and a candidate in each row, found only 'review'"):
        read_ranking(write_lines(tmp_path / "a.jsonl", [{"review": "q", "label": 1}]))


def candidates(query: str, labels: str) -> list[dict[str, object]]:
    return [{"query": query, "title": f"{query}{i}", "label": int(label)} for i, label in enumerate(labels)]


def test_groups_that_tell_nothing_apart_are_judged_and_not_learned_from(tmp_path):
    rows = [*candidates("a", "100"), *candidates("b", "000"), *candidates("c", "11"), *candidates("d", "01")]
    path = write_lines(tmp_path / "a.jsonl", rows)
    job = load_task_data(path, path, WISH)
    assert [question.query for question in job.train.examples] == ["a", "d"]
    assert len(job.dev) == 4
    assert "10 candidates for 4 queries; 40% of them are relevant" in job.notes
    assert any("2 queries are not trained on" in sentence for sentence in job.notes)


def test_a_file_without_anything_to_tell_apart_is_refused(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [*candidates("a", "111"), *candidates("b", "00")])
    with pytest.raises(InputError, match="in none of 2 groups"):
        load_task_data(path, path, WISH)


@pytest.mark.parametrize(
    ("right", "wrong", "most"), [(1, 3, 8), (1, 50, 16), (9, 3, 4), (40, 2, 16), (7, 7, 2), (5, 60, 9)]
)
def test_large_groups_are_learned_in_parts_that_leave_no_candidate_out(right, wrong, most):
    labels = (1.0,) * right + (0.0,) * wrong
    whole = RankingExample("q", tuple(f"c{i}" for i in range(right + wrong)), labels)
    made = list(split_group(whole, most))
    seen = Counter(candidate for part in made for candidate in part.candidates)
    assert set(seen) == set(whole.candidates)
    truth = dict(zip(whole.candidates, whole.truth, strict=True))
    for part in made:
        assert len(part.candidates) == len(set(part.candidates)) <= most
        assert part.truth == tuple(truth[candidate] for candidate in part.candidates)
        assert any(part.truth)
        assert not all(part.truth)
    assert (made == [whole]) == (right + wrong <= most)


def test_one_candidate_alone_cannot_be_ranked():
    with pytest.raises(InputError, match="--max-candidates 1 is too few"):
        RankingTask(max_candidates=1)


def test_an_answer_is_told_with_the_best_first():
    line = RankingPrediction(("a", "b", "c"), (0.5, 2.0, -1.0)).to_json()
    assert [one["candidate"] for one in line["prediction"]] == ["b", "a", "c"]

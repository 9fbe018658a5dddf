"""Outputs about whole rows and groups of rows, from files to answers: they learn, however a row is read out."""

from __future__ import annotations

import json

import pytest
import torch
from little_task import BAD, GOOD, little_model, little_tokenizer, ratings, reviews, write_lines

from unmask.config.pooling import Pooling
from unmask.core.codec import decode, encode
from unmask.evaluation.by_task import scores, trivial_baseline
from unmask.finetuning.artifact import BaseModelRef, load_finetuned, save_finetuned, save_predictions
from unmask.finetuning.finetune import FineTune, FineTuneSettings
from unmask.finetuning.task_data import load_task_data, read_examples
from unmask.finetuning.task_options import TaskOptions
from unmask.finetuning.tasks.protocol import TaskDefinition, TaskType
from unmask.train.run_config import DistContext, RunConfig

CPU = torch.device("cpu")
RUN, ALONE = RunConfig(device=CPU, keep_checkpoints=1, num_evals=2), DistContext(0, 1, CPU)
TOKENIZER = little_tokenizer()


@pytest.fixture(autouse=True)
def one_thread():
    """A network this small is slower on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def marked(count: int, first: int = 0) -> list[dict[str, object]]:
    """A text with one label, with another, with both and with none, in turn."""
    texts = (GOOD[1], BAD[2], f"{GOOD[1]} {BAD[2]}", BAD[0])
    labels = (["good"], ["english"], ["good", "english"], [])
    return [{"text": f"{texts[i % 4]} {i % 10}", "labels": labels[i % 4]} for i in range(first, first + count)]


def chosen(count: int, first: int = 0) -> list[dict[str, object]]:
    """The good text is right, among two or three."""
    rows = []
    for i in range(first, first + count):
        choices = [BAD[i % 3], BAD[(i + 1) % 3]][: 1 + i % 2]
        choices.insert(i % (len(choices) + 1), GOOD[i % 3])
        rows.append({"question": f"we {i}", "choices": choices, "answer": GOOD[i % 3]})
    return rows


def ranked(count: int, first: int = 0) -> list[dict[str, object]]:
    """Good texts are relevant; each third query has none."""
    return [
        {"query": f"we {i}", "title": text, "label": int(text in GOOD)}
        for i in range(first, first + count)
        for text in (*BAD[: 1 + i % 3], *(GOOD[: i % 3]))
    ]


def tuning_of(tmp_path, rows, wish: TaskOptions, epochs: float = 16) -> FineTune:
    train = write_lines(tmp_path / "train.jsonl", rows(60))
    dev = write_lines(tmp_path / "dev.jsonl", rows(18, first=101))
    how = FineTuneSettings(
        lr=5e-3, epochs=epochs, batch_size=8, max_length=24, seed=3
    )  # from some seeds, one of the labels is not learned
    return FineTune(load_task_data(train, dev, wish), little_model(), TOKENIZER, how, "little")


def nowhere(root):
    raise AssertionError("the whole network was saved")


LEARNED = {
    TaskType.CLASSIFICATION: (reviews, "accuracy", 6),
    TaskType.REGRESSION: (ratings, "pearson", 6),
    TaskType.MULTILABEL: (marked, "exact_match", 40),
    TaskType.MULTIPLE_CHOICE: (chosen, "accuracy", 6),
    TaskType.RANKING: (ranked, "map", 6),
}


@pytest.mark.parametrize("read", Pooling)
@pytest.mark.parametrize("kind", LEARNED)
def test_every_output_learns_under_every_read_out_and_comes_back_bit_for_bit(tmp_path, kind, read):
    rows, name, epochs = LEARNED[kind]
    tuning = tuning_of(tmp_path, rows, TaskOptions(task_type=kind, pooling=read), epochs)
    assert decode(json.loads(json.dumps(encode(tuning.data.task))), TaskDefinition) == tuning.data.task
    (tmp_path / "run").mkdir()
    tuned = tuning.train(tuning.encode(), RUN, ALONE, tmp_path / "run")
    judged = tuning.data.dev
    said = tuned.predict(judged)
    assert scores(tuned.task, judged, said)[name] > 0.8
    assert kind is TaskType.REGRESSION or 0.8 > trivial_baseline(tuned.task, tuning.data.train, judged)[name] >= 0

    save_predictions(tmp_path / "run", judged, said)
    save_finetuned(tuned, tmp_path / "run", BaseModelRef("little"), {})
    back = load_finetuned(tmp_path / "run", nowhere)
    assert back.task == tuned.task
    assert list(back.predict(judged)) == list(said)
    lines = [json.loads(line) for line in (tmp_path / "run/predictions.jsonl").read_text().splitlines()]
    assert len(lines) == len(judged)
    assert "prediction" in lines[0]


def test_several_labels_one_and_none_are_said(tmp_path):
    tuning = tuning_of(tmp_path, marked, TaskOptions(), epochs=40)
    assert tuning.data.task.task_type is TaskType.MULTILABEL
    (tmp_path / "run").mkdir()
    tuned = tuning.train(tuning.encode(), RUN, ALONE, tmp_path / "run")
    said = tuned.predict(tuning.data.dev)
    assert {len(answer.prediction) for answer in said} == {0, 1, 2}
    assert all(share >= 0.5 for answer in said for share in answer.probabilities)
    assert all(list(answer.probabilities) == sorted(answer.probabilities, reverse=True) for answer in said)


def test_what_is_asked_without_a_truth_is_answered_the_same(tmp_path):
    for kind in (TaskType.MULTILABEL, TaskType.MULTIPLE_CHOICE, TaskType.RANKING):
        tuning = tuning_of(tmp_path, LEARNED[kind][0], TaskOptions(task_type=kind), epochs=0.5)
        (tmp_path / kind).mkdir()
        tuned = tuning.train(tuning.encode(), RUN, ALONE, tmp_path / kind)
        bare = read_examples(tmp_path / "dev.jsonl", kind, tuned.columns, truths=False)
        assert list(tuned.predict(bare)) == list(tuned.predict(tuning.data.dev))

"""A fine-tune whose steps are recorded, in batches that were evened out: what is learned is the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from little_many import agreements
from little_tags import sentences
from little_task import TRUNK, little_model, little_tokenizer, ratings, reviews, write_lines
from test_span_output import TOKENIZER as SPANS
from test_span_output import homes

from unmask.config.pooling import Pooling
from unmask.finetuning.finetune import FineTune, FineTuneSettings
from unmask.finetuning.task_data import TaskData, load_task_data
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.finetuning.tasks.san_pair import SANPairTask
from unmask.train.batches.recipe_batches import RankSplit, RunPosition
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.run_writer import RECORD, read_record
from unmask.train.step import DeviceBatch

CPU = torch.device("cpu")
DEVICES = [CPU, *([torch.device("cuda", 0)] if torch.cuda.is_available() else [])]
HOW = FineTuneSettings(lr=3e-3, epochs=3, batch_size=8, max_length=24)
JOBS: dict[str, tuple[Any, TaskOptions]] = {
    "first": (reviews, DEFAULT_TASK_OPTIONS),
    "mean": (reviews, TaskOptions(pooling=Pooling.MEAN)),
    "attention": (reviews, TaskOptions(pooling=Pooling.ATTENTION)),
    "number": (ratings, DEFAULT_TASK_OPTIONS),
    "pair": (agreements, TaskOptions(task_type=TaskType.SAN_PAIR)),
    "tags": (sentences, DEFAULT_TASK_OPTIONS),
    "span": (homes, DEFAULT_TASK_OPTIONS),
}


def job_of(folder: Path, name: str) -> TaskData:
    rows, wish = JOBS[name]
    learned, judged = (
        write_lines(folder / "train.jsonl", rows(45)),
        write_lines(folder / "dev.jsonl", rows(9, first=90)),
    )
    job = load_task_data(learned, judged, wish)
    if isinstance(job.task, SANPairTask):
        return replace(job, task=replace(job.task, dropout=0.0))  # which votes count is drawn for added rows too
    return job


def tuning(folder: Path, name: str, **changes: object) -> FineTune:
    """Nothing is dropped out, because added tokens would have draws of their own."""
    model = little_model(trunk=replace(TRUNK, dropout=0.0, attention_dropout=0.0))
    tokenizer = SPANS if name == "span" else little_tokenizer()
    return FineTune(job_of(folder, name), model, tokenizer, replace(HOW, **changes), "little")


def curve(made: FineTune, folder: Path, device: torch.device, **logistics: object) -> list[float]:
    folder.mkdir()
    run = RunConfig(**{"device": device, "keep_checkpoints": 1, "num_evals": 1, **logistics})
    made.train(made.encode(), run, DistContext(0, 1, device), folder)
    lines = [line for line in read_record(folder / RECORD) if line["kind"] == "step"]
    return [
        number for line in lines for number in (*line["loss"].values(), *line["accuracy"].values(), line["grad_norm"])
    ]


@pytest.mark.parametrize("micro", [1 << 20, 3 * HOW.max_length], ids=["whole", "in parts"])
@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", JOBS)
def test_it_learns_the_same(tmp_path: Path, name: str, device: torch.device, micro: int) -> None:
    plain = curve(tuning(tmp_path, name), tmp_path / "plain", device, microbatch_tokens=micro)
    recorded = curve(
        tuning(tmp_path, name),
        tmp_path / "recorded",
        device,
        microbatch_tokens=micro,
        cuda_graphs=True,
        max_in_flight=2,
    )
    assert recorded == pytest.approx(plain, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", ["mean", "number"])
def test_it_learns_the_same_beside_a_language_model(tmp_path: Path, name: str) -> None:
    plain = curve(tuning(tmp_path, name, lm_weight=0.5), tmp_path / "plain", CPU)
    recorded = curve(
        tuning(tmp_path, name, lm_weight=0.5), tmp_path / "recorded", CPU, cuda_graphs=True, max_in_flight=2
    )
    assert recorded == pytest.approx(plain, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", JOBS)
def test_its_batches_are_evened_out(tmp_path: Path, name: str) -> None:
    made = tuning(tmp_path, name)
    lesson = made.encode().batch(RunPosition(0, 0.0), RankSplit())
    assert all(batch.num_padding for batch in DeviceBatch.of(lesson, CPU, bucket=True).batches)


def test_tags_that_are_scored_together_are_learned_as_they_come(tmp_path: Path) -> None:
    files = [
        write_lines(tmp_path / name, rows) for name, rows in (("a.jsonl", sentences(20)), ("b.jsonl", sentences(9)))
    ]
    made = replace(tuning(tmp_path, "tags"), data=load_task_data(*files, TaskOptions(crf=True)))
    lesson = made.encode().batch(RunPosition(0, 0.0), RankSplit())
    assert not any(batch.num_padding for batch in DeviceBatch.of(lesson, CPU, bucket=True).batches)
    plain, recorded = (
        curve(made, tmp_path / "plain", CPU),
        curve(made, tmp_path / "r", CPU, cuda_graphs=True, max_in_flight=2),
    )
    assert recorded == plain

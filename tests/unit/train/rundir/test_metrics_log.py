"""The record: what is added can be read at once, a resume cuts it back, and a torn line is no line."""

import json
import math
import tracemalloc

import pytest

from unmask.train.rundir.run_writer import RECORD, MetricsLog, read_record, truncate_after

LINES = [
    {"kind": "start", "step": 0},
    {"kind": "eval", "step": 0, "loss": {"mlm": 7.0}},
    {"kind": "step", "step": 1, "task": "完形"},
    {"kind": "step", "step": 2},
    {"kind": "eval", "step": 2},
    {"kind": "start", "step": 2},
    {"kind": "step", "step": 3},
]


def write(folder, lines, step=10**9):
    with MetricsLog(folder, step) as record:
        for line in lines:
            record.add(line)
    return folder / RECORD


def test_lines_come_back_and_are_seen_at_once(tmp_path):
    with MetricsLog(tmp_path / "new" / "run", 0) as record:
        for number, line in enumerate(LINES, start=1):
            record.add(line)
            assert len(list(read_record(record.path))) == number
        record.fsync()
    assert list(read_record(record.path)) == LINES
    assert "完形" in record.path.read_text(encoding="utf-8")


def test_going_on_removes_the_lines_that_will_be_written_again(tmp_path):
    path = write(tmp_path, LINES)
    write(tmp_path, [{"kind": "start", "step": 1}], step=1)
    assert list(read_record(path)) == [*LINES[:3], {"kind": "start", "step": 1}]
    write(tmp_path, [], step=-1)
    assert list(read_record(path)) == []


def test_the_trial_of_the_step_that_is_gone_on_from_stays(tmp_path):
    path = write(tmp_path, LINES)
    truncate_after(path, 2)
    assert list(read_record(path)) == LINES[:-1]


@pytest.mark.parametrize("torn", ['{"kind": "step", "st', '{"kind": "step", "step": 4}', "\0\0\0\0\n", "\n"])
def test_a_torn_line_is_left_out_and_removed(tmp_path, torn):
    path = write(tmp_path, LINES)
    with path.open("a") as file:
        file.write(torn)
    assert list(read_record(path)) == LINES
    write(tmp_path, [{"kind": "step", "step": 4}])
    assert list(read_record(path)) == [*LINES, {"kind": "step", "step": 4}]
    assert all(math.isfinite(json.loads(line)["step"]) for line in path.read_text().splitlines())


def test_bytes_that_are_no_text_end_the_record(tmp_path):
    path = write(tmp_path, LINES)
    with path.open("ab") as file:
        file.write(b'{"kind": "\xff\xfe')
    assert list(read_record(path)) == LINES


def test_a_long_record_is_cut_back_line_by_line(tmp_path):
    line = {"kind": "step", "step": 1, "loss": {"mlm": 7.0}, "more": "x" * 400}
    path = write(tmp_path, [line] * 20_000)
    tracemalloc.start()
    truncate_after(path, 1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 8e6
    assert most < 1e6


def test_where_nothing_was_recorded_there_is_nothing_to_cut(tmp_path):
    truncate_after(tmp_path / RECORD, 3)
    assert not (tmp_path / RECORD).exists()

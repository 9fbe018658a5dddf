"""`fill`: what is printed, what is read, and what is refused."""

import json

import pytest
from rich.cells import cell_len
from small_sources import run, write_run

from unmask.core.errors import InputError


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("fill") / "r1")


def test_each_mask_has_a_table_that_fits_80_columns(source):
    result = run("fill-mask", source, "今天天气真[MASK]，我们[MASK]公园", "the [MASK] fox", "--top-k", "4")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "今天天气真[MASK]，我们[MASK]公园"
    assert [line for line in lines if line.startswith("mask ")] == ["mask 1 of 2", "mask 2 of 2"]
    assert len([line for line in lines if " %" in line]) == 12
    assert max(map(cell_len, lines)) <= 80


def test_percent_signs_stand_under_each_other_whatever_the_script(source):
    rows = [
        line for line in run("fill-mask", source, "今天[MASK]", "--top-k", "40").output.splitlines() if " %" in line
    ]
    assert len({cell_len(line[: line.index(" %")]) for line in rows}) == 1
    assert len({cell_len(line) - len(line) for line in rows}) > 1  # wide and narrow tokens are both there


def test_json_has_every_number(source):
    result = run("fill-mask", source, "the [MASK] fox", "[MASK]", "--top-k", "2", "--json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["text"] == "the [MASK] fox"
    assert {key for guesses in second["candidates"] for guess in guesses for key in guess} == {
        "id",
        "probability",
        "token",
    }
    assert 0 < first["candidates"][0][1]["probability"] <= first["candidates"][0][0]["probability"] < 1


@pytest.mark.parametrize("words", [(), ("-",)])
def test_lines_of_standard_input_are_filled(source, words):
    result = run("fill-mask", source, *words, "--json", given="天[MASK]\n\nthe [MASK]\n")
    assert [json.loads(line)["text"] for line in result.stdout.splitlines()] == ["天[MASK]", "the [MASK]"]


def test_another_checkpoint_says_something_else(source):
    last, best = (run("fill-mask", source, "天[MASK]", "--checkpoint", which).output for which in ("last", "best"))
    assert last != best


@pytest.mark.parametrize(
    ("words", "said"),
    [(("no hole",), "nothing to fill"), (("天" * 40 + "[MASK]",), "reads 24 at most"), (("-",), "There is no text")],
)
def test_a_mistake_is_told(source, words, said):
    result = run("fill-mask", source, *words)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)


def test_a_tuned_folder_is_told(tmp_path):
    (tmp_path / "task.json").write_text("{}")
    assert "fine-tuned for a task" in str(run("fill-mask", tmp_path, "[MASK]").exception)


def test_the_generator_of_a_run_fills_and_says_so(tmp_path):
    source = write_run(tmp_path / "r1", "electra")
    result = run("fill-mask", source, "the [MASK] fox", "--json")
    assert result.exit_code == 0
    assert "filled by the generator" in result.stderr
    assert len(json.loads(result.stdout)["candidates"][0]) == 5
    assert run("export", source, tmp_path / "judge").exit_code == 0
    alone = run("fill-mask", tmp_path / "judge", "the [MASK] fox")
    assert "no LM head" in str(alone.exception)
    assert run("export", source, tmp_path / "generator", "--as", "generator").exit_code == 0
    assert run("fill-mask", tmp_path / "generator", "the [MASK] fox", "--json").stdout == result.stdout

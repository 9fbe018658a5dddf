"""The folder of a run: begun once, gone on with, refused where it is not ours."""

from dataclasses import replace

import pytest

from unmask.core.codec import encode
from unmask.core.errors import CorpusError, InputError
from unmask.data.input_formats.row_plan import StaticMasking
from unmask.members import member
from unmask.train.rundir.folder import (
    check_same_run,
    is_finished,
    is_run_folder,
    lock_run,
    mark_finished,
    read_run,
    start_or_resume,
)

MINE = {
    "kind": "pretrain",
    "recipe": {"name": "bert", "stages": [{"length": 8}, {"length": 16}]},
    "seed": 0,
    "from": "",
    "data": "a" * 32,
    "files": [["a.train.jsonl", "a" * 32], ["a.dev.jsonl", "b" * 32]],
}


def test_a_run_is_begun_once_and_gone_on_with(tmp_path):
    out = tmp_path / "runs" / "one"
    check_same_run(out, MINE)
    assert not out.exists()
    with lock_run(out):
        assert not is_run_folder(out)
        start_or_resume(out, MINE)
    assert is_run_folder(out)
    assert read_run(out) == MINE
    check_same_run(out, MINE)
    with lock_run(out):
        start_or_resume(out, {**MINE, "unmask": "9.9", "parameters": 3, "fingerprint": "x"})
        assert read_run(out) == MINE
        assert not is_finished(out)
        mark_finished(out, {"step": 3})
    assert is_finished(out)
    assert sorted(path.name for path in out.iterdir()) == ["finished.json", "run.json"]


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"seed": 1}, "seed was 0 and is now 1"),
        ({"data": "b" * 32}, "data has changed since. To go on"),
        ({"from": "other"}, 'from was "" and is now "other"'),
        ({"budget": {"steps": 4}}, 'budget was nothing and is now {"steps": 4}'),
        ({"recipe": {"name": "bert", "stages": [{"length": 8}, {"length": 9}]}}, "recipe.stages.1.length was 16 and"),
        (
            {"recipe": {"name": "bert", "stages": [{"length": 8}]}},
            'recipe.stages.1 was {"length": 16} and is now nothing',
        ),
        ({"files": MINE["files"][:1]}, f'files.1 was ["a.dev.jsonl", "{"b" * 32}"] and is now nothing'),
        (
            {"files": [*MINE["files"], ["c", "c"]]},
            'files.2 was nothing and is now ["c", "c"]',
        ),
        ({"files": [["other.jsonl", "a" * 32]]}, 'files.0.0 was "a.train.jsonl" and is now "other.jsonl"'),
        ({"files": [["a.train.jsonl", "c" * 32]]}, "files.0.1 has changed since. To go on"),
    ],
)
def test_another_run_is_refused_with_the_first_difference(tmp_path, change, difference):
    start_or_resume(tmp_path, MINE)
    for refuse in (check_same_run, start_or_resume):
        with pytest.raises(InputError) as caught:
            refuse(tmp_path, {**MINE, **change})
        assert difference in str(caught.value)


def test_what_only_describes_a_recipe_may_be_worded_anew(tmp_path):
    start_or_resume(tmp_path, {"recipe": {"name": "bert", "changed": "the root", "title": "BERT", "year": 2018}})
    check_same_run(
        tmp_path, {"recipe": {"name": "bert", "changed": "where it all began", "title": "Bert", "year": 2019}}
    )


def test_a_run_is_the_same_with_fields_that_were_added_with_a_default_since(tmp_path):
    saved = encode(member("bert"))
    start_or_resume(tmp_path, {"recipe": {name: saved[name] for name in saved if name != "loss_weighting"}})
    check_same_run(tmp_path, {"recipe": saved})
    with pytest.raises(InputError, match=r"recipe\.masking"):
        check_same_run(tmp_path, {"recipe": encode(replace(member("bert"), masking=StaticMasking(3)))})


def test_a_path_in_the_description_is_compared_as_text(tmp_path):
    start_or_resume(tmp_path, {"corpus": {"folder": "here", "manifest": "ab"}})
    check_same_run(tmp_path, {"corpus": {"folder": "there", "manifest": "ab"}})
    with pytest.raises(InputError, match=r"corpus\.manifest"):
        check_same_run(tmp_path, {"corpus": {"folder": "here", "manifest": "cd"}})


def test_what_is_not_ours_is_not_touched(tmp_path):
    (tmp_path / "thesis.doc").write_text("years of work")
    for refuse in (lambda: check_same_run(tmp_path, MINE), lock_run(tmp_path).__enter__):
        with pytest.raises(InputError, match=r"holds no run of unmask \(it holds thesis.doc\)"):
            refuse()
    with pytest.raises(InputError, match="is a file, and a run needs a folder"):
        check_same_run(tmp_path / "thesis.doc", MINE)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]


def test_one_holder_at_a_time_and_an_empty_folder_vanishes(tmp_path):
    out = tmp_path / "run"
    with lock_run(out):
        assert out.is_dir()
        with pytest.raises(CorpusError, match="Another process is training in"), lock_run(out):
            pass
    assert not out.exists()


def test_what_a_killed_run_left_unfinished_is_swept(tmp_path):
    start_or_resume(tmp_path, MINE)
    (tmp_path / ".record.jsonl.4711").write_text("half")
    (tmp_path / ".hidden").write_text("mine")
    with lock_run(tmp_path):
        assert not (tmp_path / ".record.jsonl.4711").exists()
    assert (tmp_path / ".hidden").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "\0"])
def test_a_description_that_cannot_be_read(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run\.json"):
        check_same_run(tmp_path, MINE)


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(InputError, match=r"holds no run: it has no run\.json"):
        read_run(tmp_path)

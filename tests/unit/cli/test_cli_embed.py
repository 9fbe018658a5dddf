"""`embed`: a file of vectors, and what is said about it."""

import numpy as np
import pytest
from small_sources import run, write_run

from unmask.core.errors import InputError


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("embed") / "r1")


def test_one_vector_a_row_in_order(source, tmp_path):
    (tmp_path / "a.txt").write_text("天气\nthe quick brown fox jumps\n散步\n")
    (tmp_path / "b.csv").write_text("text,n\nthe quick brown fox jumps,1\n天气,2\n")
    out = tmp_path / "new" / "v.npy"
    result = run("embed", source, tmp_path / "a.txt", tmp_path / "b.csv", "--out", out, "--batch-size", "2")
    assert result.exit_code == 0
    assert "5 vectors of 16 numbers, float32" in result.stdout.replace("\n", " ")
    vectors = np.load(out)
    assert (vectors.shape, vectors.dtype) == ((5, 16), np.float32)
    np.testing.assert_allclose(vectors[[0, 1]], vectors[[4, 3]], atol=1e-6)
    assert not np.allclose(vectors[0], vectors[2])


def test_the_options_reach_the_vectors(source, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"body": "天气"}\n{"body": "散步"}\n')
    words = ("embed", source, tmp_path / "a.jsonl", "--field", "body", "--out", tmp_path / "v.npy")
    made = {}
    for extra in (
        (),
        ("--pooling", "first"),
        ("--pooling", "max"),
        ("--layer", "0"),
        ("--layer", "2"),
        ("--normalize",),
    ):
        assert run(*words, *extra).exit_code == 0
        made[extra] = np.load(tmp_path / "v.npy")
    np.testing.assert_array_equal(made[()], made["--layer", "2"])
    assert not np.allclose(made["--pooling", "first"], made["--pooling", "max"])
    assert not np.allclose(made["--layer", "0"], made["--layer", "2"])
    np.testing.assert_allclose(np.linalg.norm(made["--normalize",], axis=1), 1, atol=1e-5)


def test_long_texts_are_mentioned(source, tmp_path):
    result = run("embed", source, "-", "--out", tmp_path / "v.npy", given="天" * 50 + "\n短\n")
    assert "note: 1 of 2 texts are longer than the 24 tokens" in result.stderr.replace("\n", " ")
    assert np.load(tmp_path / "v.npy").shape == (2, 16)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--layer", "3"), "there is no layer 3"),
        (("--layer", "first"), "needs 'last' or a number from 0 to 2"),
        (("--field", "body"), "no text under 'body'"),
        (("--device", "tpu9"), "cannot be used here"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(source, tmp_path, words, said):
    (tmp_path / "a.jsonl").write_text('{"text": "天气"}\n')
    result = run("embed", source, tmp_path / "a.jsonl", "--out", tmp_path / "v.npy", *words)
    assert said in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_folder_cannot_be_the_file(source, tmp_path):
    (tmp_path / "a.txt").write_text("天气")
    result = run("embed", source, tmp_path / "a.txt", "--out", tmp_path)
    assert isinstance(result.exception, InputError)
    assert "is a folder" in str(result.exception)


def test_vectors_are_not_written_under_the_name_of_a_text(source, tmp_path):
    (tmp_path / "a.txt").write_text("天气")
    result = run("embed", source, tmp_path / "a.txt", "--out", tmp_path / "a.txt")
    assert isinstance(result.exception, InputError)
    assert "a.npy" in str(result.exception)
    assert (tmp_path / "a.txt").read_text() == "天气"


@pytest.mark.parametrize(("name", "content"), [("a.txt", ""), ("a.jsonl", "\n"), ("a.csv", "text,label\n")])
def test_no_text_at_all_is_refused_before_the_network_is_read(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    result = run("embed", tmp_path / "no network", tmp_path / name, "--out", tmp_path / "v.npy")
    assert isinstance(result.exception, InputError)
    assert f"There is no text in {tmp_path / name}. Give a file with a text on each line" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    again = run("embed", tmp_path / "no network", "-", "--out", tmp_path / "v.npy", given="")
    assert "There is no text in standard input." in str(again.exception)


def test_one_empty_file_among_others_does_no_harm(source, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "line.txt").write_text("\n")  # an empty line is a text
    files = (tmp_path / "empty.txt", tmp_path / "line.txt")
    assert run("embed", source, *files, "--out", tmp_path / "v.npy").exit_code == 0
    assert np.load(tmp_path / "v.npy").shape == (1, 16)

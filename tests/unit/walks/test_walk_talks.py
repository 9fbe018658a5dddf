"""A conversation is walked turn by turn."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from unmask.cli.walk import walk
from unmask.core.errors import InputError, RecipeError
from unmask.members import member
from unmask.walks.context import WalkContext, annotate, as_dialogue
from unmask.walks.toy_vocab import DIALOGUE, other_toy_dialogue
from unmask.walks.walk import WalkTarget
from unmask.walks.walk import walk as take

SUBJECT = WalkTarget.of_member(member("ernie"), "basic-dialogue")
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(walk)


def run(*words):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, words, catch_exceptions=False).stdout


def walked(seed):
    texts = DIALOGUE, other_toy_dialogue(DIALOGUE)
    ground = WalkContext.toy(texts, SUBJECT.spelling)
    documents = [annotate(as_dialogue(one, "--text"), frozenset()) for one in texts]
    return take(SUBJECT, documents[0], ground, documents[1], seed, range(2))


def test_every_row_shows_who_speaks_and_says_whether_a_turn_is_fake():
    found = [walked(seed) for seed in range(12)]
    for one in found:
        turns = [0]
        for token in one.row:
            turns[-1] += token.segment if token.text == "[SEP]" else 0
            turns += [0] if token.text == "[SEP]" else []
        assert turns[:-1] in ([2, 3], [2, 3, 2])
        assert all(draw.is_restored for draw in one.corrupted_rows)
    fake = ["from another conversation" in one.corrupted_rows[0].targets[-1].description for one in found]
    assert set(fake) == {True, False}
    assert [bool(one.other_text_note) for one in found] == fake
    assert {one.num_rows for one in found} == {1, 2}  # a window of two turns leaves one, and the last row reaches back


def test_the_command_walks_any_task():
    shown = run("ernie", "--task", "entity-dialogue", "--text", "你去哪里？\n去上海。", "--other", "好吗？\n好。")
    assert "stage 3 of 3" in shown
    assert "segment Q     Q" in shown
    assert "a sample" not in shown
    assert "公" in run("ernie", "--task", "phrase-dialogue")
    assert "--task takes another: basic-dialogue, phrase," in " ".join(run("ernie").split())


def test_what_is_no_conversation_is_refused():
    with pytest.raises(InputError, match=r"two turns or more.*--text has 1 line"):
        run("ernie", "--task", "basic-dialogue", "--text", "一句话")
    with pytest.raises(InputError, match=r"--other has 1 line"):
        run("ernie", "--task", "basic-dialogue", "--other", "一句话")
    with pytest.raises(RecipeError, match=r"no task 'x'. It has: 'basic', 'basic-dialogue'"):
        run("ernie", "--task", "x")
    with pytest.raises(RecipeError, match="no member was named"):
        run("--task", "x")

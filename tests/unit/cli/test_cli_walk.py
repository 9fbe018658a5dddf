"""The command: what is named, what is printed, and what is refused."""

import pytest
import typer
from typer.testing import CliRunner

from unmask.cli.walk import SAMPLE, walk
from unmask.core.errors import CorpusError, InputError, RecipeError
from unmask.core.records import UnitKind
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.tasks.presets import presets
from unmask.walks.toy_vocab import other_toy_document, toy_tokenizer

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(walk)


def run(*words):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, words, catch_exceptions=False)


def test_a_member_and_a_rule_are_walked():
    assert "bert" in run("bert").stdout
    assert SAMPLE in run("--rule", "span").stdout
    assert "\x1b" not in run("--rule", "span").stdout


def test_a_member_folds_case_and_the_other_text_is_the_users():
    shown = run("bert", "--text", "The cat").stdout
    assert "token the|cat" in shown
    assert "a sample sentence" in shown
    assert "a sample sentence" not in run("bert", "--text", "The cat", "--other", "A dog.").stdout
    assert "token The|cat" in run("--rule", "token", "--text", "The cat").stdout


def test_a_corpus_brings_its_own_words_and_phrases(tmp_path):
    tokenizer = toy_tokenizer([SAMPLE, other_toy_document(SAMPLE)])
    tokenizer.save(tmp_path / "tokenizer.json")
    Manifest(tokenizer.digest, "", (UnitKind.WORD,), {}, Counts(), {}, {}).save(tmp_path / "manifest.json")
    (tmp_path / "dictionary.txt").write_text("下一个词\n", encoding="utf-8")
    (tmp_path / "phrases.txt").write_text("语言 模型\n", encoding="utf-8")
    for subject in (("wwm",), ("--rule", "phrase")):
        shown = run(*subject, "--data", str(tmp_path)).stdout
        assert "words 使用|语言|模型|来|预测|下一个词|的|概率" in shown
        assert "phrases 语言模型\n" in shown


def test_without_a_name_all_rules_are_shown():
    shown = run().stdout
    assert all(f"\n{rule.name}" in f"\n{shown}" for rule in presets())


def test_the_examples_of_the_help_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = [
        line.split()[2:] for line in (walk.__doc__ or "").splitlines() if line.strip().startswith("unmask walk")
    ]
    assert len(examples) == 5
    for words in examples:
        assert run(*(word.strip('"') for word in words)).exit_code == 0
    assert (tmp_path / "walk.html").exists()


def test_seed_visit_and_set_change_the_draw():
    plain = run("--rule", "token").stdout
    assert run("--rule", "token").stdout == plain
    for change in (("--seed", "1"), ("--visit", "1"), ("--set", "corruption.select.rate=0.5")):
        assert run("--rule", "token", *change).stdout != plain
    assert "50 % of the row" in run("--rule", "token", "--set", "corruption.select.rate=0.5").stdout
    assert "rule's own rate" not in run("--rule", "span", "--set", "corruption.select.rate=0.2").stdout
    assert "rule's own rate" not in run("--rule", "span", "--exact").stdout


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        (("--rule", "spam"), RecipeError, "There is no rule 'spam'"),
        (("spam",), RecipeError, "There is no member 'spam'"),
        (("bert", "--rule", "token"), RecipeError, "not both"),
        (("--set", "a=b"), RecipeError, "name it"),
        (("--rule", "token", "--set", "rate"), RecipeError, "PATH=VALUE"),
        (("--rule", "token", "--text", " "), InputError, "nothing to walk"),
        (("--rule", "token", "--data", "nowhere"), CorpusError, "no prepared corpus"),
        (("--rule", "phrase", "--phrase", "天气"), InputError, "does not occur in the text"),
    ],
)
def test_mistakes_are_sentences(words, error, sentence):
    with pytest.raises(error, match=sentence):
        run(*words)

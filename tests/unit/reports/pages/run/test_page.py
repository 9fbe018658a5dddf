"""A run as a page: one safe file that needs nothing else and holds what the record holds."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from runs import SHOWN, head, record, sample, start, step, trial, write_run

from unmask.core.codec import override
from unmask.core.errors import InputError
from unmask.core.io.atomic import digest_file
from unmask.core.records import UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.tokenize.vocab import Vocab
from unmask.members import member
from unmask.reports.pages.run.page import run_labels, run_page, write_report
from unmask.reports.read_run import read_run

VOID = {"meta", "path"}


class Reader(HTMLParser):
    """Reads a page: that every tag is closed, all tags, attributes and text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(page)
        assert not self.open
        self.text = " ".join(self.words)

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes += attributes
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        if name not in VOID:
            assert self.open.pop() == name

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)


@pytest.fixture
def run(tmp_path):
    return read_run(write_run(tmp_path / "run", record(300, 50, resumes=(120,))))


def test_a_page_says_what_was_trained_how_long_and_how_well(run):
    text = Reader(run_page([run])).text
    for words in ("bert tiny", "4.39 M parameters", "data/gone", "a budget of 1,000 steps", "finished after 300 steps",
                  "best validation; perplexity 12.4, at step 300", "resumed once", "1 × cpu"):  # fmt: skip
        assert words in text
    best = min(line["loss"]["mlm"] for line in record(300, 50) if line["kind"] == "eval")
    assert f"{best:.3f}" in text


def test_a_page_needs_no_network_and_its_script_only_reads_curves(run):
    raw = run_page([run])
    page = Reader(raw)
    assert not {name for name, _ in page.attributes} & {"src", "href", "srcset", "onclick", "onload"}
    assert not set(page.tags) & {"link", "img", "iframe"}
    assert not [word for word in ("http", "url(", "@import", "fetch(", "import(") if word in raw]
    assert page.tags.count("script") == 1
    assert "prefers-color-scheme: dark" in raw
    assert "width=device-width" in raw


def test_every_number_has_its_curve(run):
    page = Reader(run_page([run]))
    labels = [value for name, value in page.attributes if name == "aria-label"]
    assert labels == [
        "mlm, by steps", "next, by steps", "mlm, by steps", "next, by steps", "learning rate, by steps",
        "gradient norm, by steps", "tokens per second, by steps",
    ]  # fmt: skip
    classes = [value for name, value in page.attributes if name == "class"]
    assert classes.count("mark") == len(labels)  # one resume in each chart
    assert classes.count("dots c1") == 4  # validation of two objectives, loss and accuracy
    assert "rows of 512" in page.text


def test_text_is_escaped_wherever_it_comes_from(tmp_path):
    nasty = "<img src=x>&\"'"
    line = sample(0)
    line["lines"][0]["shown"] = [nasty, *SHOWN[1:]]
    line["lines"][0]["guesses"]["4"][0][0] = nasty
    odd = {"kind": "eval", "step": 1, "loss": {nasty: 1.0}, "scores": {nasty: 0.5}}
    folder = write_run(
        tmp_path / "run", [start(device=nasty), step(1), line, odd], corpus={"folder": nasty}, seed=nasty
    )
    page = Reader(run_page([read_run(folder), read_run(write_run(tmp_path / "<b>"))]))
    assert "img" not in page.tags
    assert nasty in page.text


def test_samples_show_how_guesses_change_and_mark_the_truth(tmp_path):
    lines = [start(), step(1), *(sample(number) for number in range(0, 1001, 50))]
    raw = run_page([read_run(write_run(tmp_path / "run", lines))])
    text = Reader(raw).text
    assert "气 ✓" in text
    assert text.count("asked for") == 2  # the explanation, and the head of one table: the sentence stands once
    assert "step 0" in text
    assert "step 1,000" in text
    assert raw.count('<td class="soft">step') == 7  # of 21 trials


def test_a_changed_recipe_is_held_against_the_published_one(tmp_path):
    recipe = override(member("wwm", "mini"), "stages.0.max_length", "64")
    text = Reader(run_page([read_run(write_run(tmp_path / "run", recipe=recipe))])).text
    assert "wwm mini" in text
    assert "stages.0.max_length 128 64" in text
    assert "nothing was changed" in Reader(run_page([read_run(write_run(tmp_path / "other"))])).text


def test_a_recipe_of_ones_own_is_shown_without_a_comparison(tmp_path):
    recipe = replace(member("bert", "tiny"), name="mine")
    text = Reader(run_page([read_run(write_run(tmp_path / "run", recipe=recipe))])).text
    assert "mine is a recipe of one's own" in text
    assert "corruption: MaskTokens" in text


def test_a_recipe_with_parts_from_elsewhere_is_told_as_that(tmp_path):
    folder = write_run(tmp_path / "run")
    stored = head()
    stored["recipe"]["network"]["type"] = "somewhere:Else"
    (folder / "run.json").write_text(json.dumps({"format": 1, **stored}))
    text = Reader(run_page([read_run(folder)])).text
    assert "cannot be read with the parts of this version" in text
    assert "'somewhere:Else' is not of unmask" in text
    assert "finished after 300 steps" in text


def test_the_audit_is_missing_with_a_reason(tmp_path):
    def text(name, **corpus):
        return Reader(run_page([read_run(write_run(tmp_path / name, corpus=corpus))])).text

    (tmp_path / "manifest.json").write_text("{}")
    assert "there is no prepared corpus in data/gone now" in text("a", folder="data/gone", manifest="")
    assert "is another one than the run learned from" in text("b", folder=str(tmp_path), manifest="0")
    digest = digest_file(tmp_path / "manifest.json")
    assert "needs format 1" in text("c", folder=str(tmp_path), manifest=digest)
    assert "does not name the corpus" in text("d")


def test_the_audit_of_the_corpus_is_shown_with_its_verdict(tmp_path, monkeypatch):
    documents = np.arange(41) * 200
    bits = np.zeros(documents[-1], np.uint8)
    bits[::2] = UnitFlag.WORD
    bits[::40] = UnitFlag.BORDER
    ids = np.random.default_rng(1).integers(10, 500, len(bits)).astype(np.uint16)
    vocab = Vocab(500, 2, 3, 4, 0, 1, np.arange(10, 500, dtype=np.int32), np.zeros(0, np.int32))
    counts = Counts(documents=40, tokens=len(bits))
    manifest = Manifest("", "", (UnitKind.WORD, UnitKind.SENTENCE), {}, counts, {}, {})
    corpus = Corpus(tmp_path, manifest, (Shard(ids, bits, documents, 0),), vocab)
    monkeypatch.setattr(Corpus, "open", staticmethod(lambda folder: corpus))
    (tmp_path / "manifest.json").write_text("{}")
    named = {"folder": str(tmp_path), "manifest": digest_file(tmp_path / "manifest.json")}
    text = Reader(run_page([read_run(write_run(tmp_path / "run", corpus=named))])).text
    assert "bert: every judged rule holds" in text
    assert "cloze, rows of 128" in text
    assert "tokens chosen (15 % wanted)" in text


def test_several_runs_are_compared_and_each_can_be_opened(tmp_path):
    one = read_run(write_run(tmp_path / "one"))
    two = read_run(write_run(tmp_path / "two", record(200, 50, of=400), finished=False))
    page = Reader(run_page([one, two]))
    assert "2 runs" in page.text
    assert "stopped at step 200, 50.0 % of the budget" in page.text
    labels = [value for name, value in page.attributes if name == "aria-label"]
    assert labels[:2] == ["mlm, by tokens", "next, by tokens"]
    assert labels.count("mlm, by steps") == 4  # loss and accuracy of each run, folded
    assert [value for name, value in page.attributes if name == "data-name"][:2] == ["one", "two"]
    again = read_run(write_run(tmp_path / "deep" / "one"))
    assert run_labels([one, two, again]) == (str(one.folder), "two", str(again.folder))


def test_a_run_of_tune_shows_its_scores(tmp_path):
    folder = tmp_path / "tuned"
    lines = [start()]
    for number in range(1, 41):
        line = step(number, 40)
        lines.append({**line, "loss": {"judge": line["loss"]["next"]}, "accuracy": {"judge": line["accuracy"]["next"]}})
    lines.append({**trial(40, 40), "loss": {"judge": 0.31}, "accuracy": {"judge": 0.88}})
    write_run(folder, lines)
    asked = {"type": "classification", "labels": ["bad", "good"]}
    moves = {"type": "scalar-mixing", "move": False}
    said = {"kind": "tune", "source": {"name": "runs/m"}, "output": asked, "policy": moves, "settings": {"epochs": 3}}
    (folder / "run.json").write_text(json.dumps({"format": 1, **said}))
    ends = {"metrics": {"accuracy": 0.8812, "matthews": None}, "layers": [0.25, 0.75]}
    (folder / "finished.json").write_text(json.dumps({"format": 1, **ends}))
    text = Reader(run_page([read_run(folder)])).text
    for words in (
        "runs/m",
        "fine-tuning",
        "accuracy",
        "0.8812",
        "judge loss",
        "0.310",
        "bad, good",
        "scalar-mixing",
        "epochs 3",
        "75.0 %",
    ):
        assert words in text
    assert "matthews" not in text
    assert "audit" not in text
    both = Reader(run_page([read_run(folder), read_run(write_run(tmp_path / "other"))])).text
    assert "0.8812" in both


def test_an_objective_that_says_a_number_has_no_accuracy(tmp_path):
    lines = [
        start(),
        *({**step(n), "loss": {"rate": 1 / n}, "accuracy": {"rate": 0.0}, "masked_fraction": 0.0} for n in (1, 2)),
    ]
    lines.append({**trial(2), "loss": {"rate": 0.5}, "accuracy": {"rate": 0.0}})
    text = Reader(run_page([read_run(write_run(tmp_path / "run", lines))])).text
    assert "rate loss 0.500" in text
    assert not [word for word in ("nats", "accuracy", "rate right", "predicted tokens") if word in text]


def test_a_record_with_trials_only_still_makes_a_page(tmp_path):
    folder = write_run(tmp_path / "run", [{"kind": "eval", "step": 3, "metrics": {"f1": 0.5}}], finished=False)
    text = Reader(run_page([read_run(folder)])).text
    assert "stopped at step 3" in text
    assert "last validation; highest 0.5000 at step 3" in text


def test_a_long_run_gives_a_small_page(tmp_path):
    page = run_page([read_run(write_run(tmp_path / "run", record(6000, 3)))])
    assert len(page) < 300_000
    assert max(len(value.split("L")[0].split()) for name, value in Reader(page).attributes if name == "d") <= 2 * 500


def test_a_page_that_cannot_be_written_is_a_sentence(run, tmp_path):
    with pytest.raises(
        InputError, match=r"report\.html cannot be written \(No such file or directory\)\. Choose another"
    ):
        write_report([run], tmp_path / "missing" / "report.html")

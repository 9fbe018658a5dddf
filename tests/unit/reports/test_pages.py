"""Pages are safe files that need nothing else, and hold what users rely on."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from pages import NASTY, Outline, landscape, run_records, sample_pages
from runs import SHOWN, record, sample, start, step, trial, write_run
from walks import SEVERAL, SUBJECTS, take

from unmask.core.errors import InputError
from unmask.core.io.atomic import digest_file
from unmask.core.records import UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.tokenize.vocab import Vocab
from unmask.reports.landscape_results import DevMetric
from unmask.reports.pages.landscape import landscape_page
from unmask.reports.pages.run.page import run_labels, run_page, write_report
from unmask.reports.pages.walk import walk_page, write_page
from unmask.reports.read_run import read_run


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return sample_pages(tmp_path_factory.mktemp("pages"))


def test_pages_need_no_network_and_fit_phones_and_dark_screens(pages):
    for name, raw in pages.items():
        page = Outline(raw)
        assert not {key for key, _ in page.attributes} & {"src", "href", "srcset", "onclick", "onload"}
        assert not set(page.tags) & {"link", "img", "iframe"}
        assert not [word for word in ("http", "url(", "@import", "fetch(", "import(") if word in raw]
        assert page.tags.count("script") == (name in ("run", "runs", "compare", "landscape"))
        assert "prefers-color-scheme: dark" in raw
        assert "width=device-width" in raw
        assert not re.search(r"\b(nan|inf|NaN|Infinity)\b", page.text)


def test_text_is_escaped_wherever_it_comes_from(pages, tmp_path):
    line = sample(0)
    line["lines"][0]["shown"] = [NASTY, *SHOWN[1:]]
    line["lines"][0]["guesses"]["4"][0][0] = NASTY
    odd = {"kind": "eval", "step": 1, "loss": {NASTY: 1.0}, "scores": {NASTY: 0.5}}
    lines = [start(device=NASTY), step(1), line, odd]
    run = read_run(write_run(tmp_path / "run", lines, corpus={"folder": NASTY}, seed=NASTY))
    script = "<script>alert('x')</script> & \"quotes\" </style>"
    shown = [pages["compare"], pages["landscape"], pages["suite"], run_page([run])]
    assert all(NASTY in Outline(page).text for page in shown)  # and every tag that is open is closed
    for rule in ("token", "t5", "xlnet", "gpt"):
        page = Outline(walk_page([take(rule, script)]))
        assert "script" not in page.tags
        assert script in "".join(page.words)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_every_walk_has_a_page_with_all_stages(subject):
    page = Outline(walk_page([take(subject, SEVERAL)]))
    assert page.tags.count("section") >= 9
    assert "✓ exactly" in page.text


def test_a_walk_shows_what_was_masked_and_who_sees_whom():
    walk, causal = take("token"), take("gpt")
    page, size = walk_page([walk]), len(causal.row)
    for answer in walk.corrupted_rows[0].targets[0].tokens:
        assert f'<span class="was">{answer.target_token}</span>' in page
        assert f'<span class="says">{answer.target_token}</span>' in page
    assert walk_page([causal]).count('class="seen"') == size * (size + 1) // 2


def test_a_run_shows_its_numbers_curves_and_predictions(tmp_path):
    lines = [*record(300, 50, resumes=(120,)), *(sample(number) for number in range(0, 1001, 50))]
    raw = run_page([read_run(write_run(tmp_path / "run", lines))])
    page = Outline(raw)
    best = min(line["loss"]["mlm"] for line in lines if line["kind"] == "eval")
    for words in ("4.39 M parameters", "perplexity 12.4, at step 300", "resumed once", "rows of 512", f"{best:.3f}"):
        assert words in page.text
    assert raw.count('<td class="soft">step') == 7  # of 21 evaluations
    assert "nothing was changed" in page.text


def test_recipes_that_differ_or_cannot_be_read_are_named(tmp_path):
    changed, mine = run_records(tmp_path)
    assert "stages.0.max_length 128 64" in " ".join(Outline(run_page([changed])).text.split())
    assert "mine is a custom recipe" in Outline(run_page([mine])).text
    stored = {**changed.metadata, "recipe": {**changed.metadata["recipe"], "network": {"type": "somewhere:Else"}}}
    text = Outline(run_page([replace(changed, metadata=stored)])).text
    assert "cannot be read with the parts of this version" in text
    assert "finished after 120 steps" in text


def test_the_audit_is_missing_with_a_reason(tmp_path):
    def text(name, **corpus):
        return Outline(run_page([read_run(write_run(tmp_path / name, corpus=corpus))])).text

    (tmp_path / "manifest.json").write_text("{}")
    assert "there is no prepared corpus in data/gone" in text("a", folder="data/gone", manifest="")
    assert "was changed after the run" in text("b", folder=str(tmp_path), manifest="0")
    digest = digest_file(tmp_path / "manifest.json")
    assert "needs format 1" in text("c", folder=str(tmp_path), manifest=digest)
    assert "does not name its corpus" in text("d")


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
    page = Outline(run_page([read_run(write_run(tmp_path / "run", corpus=named))]))
    assert "cloze, rows of 128" in page.text
    assert ("class", "fold") in page.attributes


def test_several_runs_are_named_and_a_stopped_one_is_marked(tmp_path):
    one, two = run_records(tmp_path)
    page = Outline(run_page([one, two]))
    assert "stopped at step 60, 50.0 % of the budget" in page.text
    assert [value for name, value in page.attributes if name == "data-name"][:2] == ["one", "two"]
    again = read_run(write_run(tmp_path / "deep" / "one"))
    assert run_labels([one, two, again]) == (str(one.folder), "two", str(again.folder))


def test_a_fine_tuned_run_shows_its_scores_and_an_odd_record_still_has_a_page(tmp_path):
    lines = [start(), *({**step(n), "loss": {"rate": 1 / n}, "accuracy": {"rate": 0.0}} for n in (1, 2))]
    lines.append({**trial(2), "loss": {"rate": 0.5}, "accuracy": {"rate": 0.0}})
    tuned = read_run(write_run(tmp_path / "tuned", lines))
    ends = ({"metrics": {"accuracy": 0.8812, "matthews": None}, "layers": [0.25, 0.75]},)
    head = {"kind": "tune", "source": {"name": "runs/m"}, "output": {"type": "classification", "labels": ["bad"]}}
    text = Outline(run_page([replace(tuned, metadata=head, ends=ends)])).text
    assert not [words for words in ("runs/m", "0.8812", "classification (labels bad)", "75.0 %") if words not in text]
    assert not [words for words in ("matthews", "audit", "nats", "rate right") if words in text]
    only = read_run(write_run(tmp_path / "only", [{"kind": "eval", "step": 3, "metrics": {"f1": 0.5}}], finished=False))
    assert "highest 0.5000 at step 3" in Outline(run_page([only])).text


def test_a_long_run_gives_a_small_page(tmp_path):
    page = run_page([read_run(write_run(tmp_path / "run", record(6000, 3)))])
    assert len(page) < 300_000
    assert max(len(value.split("L")[0].split()) for name, value in Outline(page).attributes if name == "d") <= 2 * 500


def test_a_landscape_without_right_answers_shows_losses():
    page = landscape_page(landscape(DevMetric.LOSS), [], [])
    assert "dev loss" in page
    assert "dev error" not in page


def test_a_page_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"walk\.html cannot be written .*Choose another"):
        write_page([take("token")], tmp_path / "missing" / "walk.html")
    with pytest.raises(InputError, match=r"report\.html cannot be written .*Choose another"):
        write_report(run_records(tmp_path)[:1], tmp_path / "missing" / "report.html")

"""A walk as a page: one safe file that needs nothing else."""

from html.parser import HTMLParser

import pytest
from walks import SENTENCE, SEVERAL, SUBJECTS, take

from unmask.core.errors import InputError
from unmask.reports.html.elements import tag, text
from unmask.reports.pages.walk import walk_page, write_page

VOID = {"meta", "rect"}


class Reader(HTMLParser):
    """Reads a page and keeps what matters: the tags that are open, all tags, all text, all attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes += attributes
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        if name not in VOID:
            assert self.open.pop() == name

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(*walks):
    reader = Reader()
    reader.feed(walk_page(walks))
    assert not reader.open
    return reader


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_every_page_is_well_formed_and_shows_all_stages(subject):
    page = read(take(subject, SEVERAL))
    words = " ".join(page.text)
    for name in ("text", "words", "tokens", "example", "selection", "input", "targets", "restored"):
        assert name in words
    assert "✓ exactly" in words
    assert page.tags.count("svg") >= 1


def test_a_page_needs_no_network_and_runs_no_script():
    page = read(take("token"))
    names = {name for name, _ in page.attributes}
    assert not names & {"src", "href", "onclick", "onload", "srcset"}
    assert not set(page.tags) & {"script", "link", "img", "iframe"}
    raw = walk_page([take("token")])
    assert "http" not in raw
    assert "url(" not in raw
    assert "@import" not in raw


@pytest.mark.parametrize("rule", ["token", "t5", "bart", "xlnet", "gpt", "similar"])
def test_text_is_escaped_wherever_it_appears(rule):
    nasty = "<script>alert('x')</script> & \"quotes\" </style><b>bold</b>"
    page = read(take(rule, nasty))
    assert "script" not in page.tags
    assert nasty in "".join(page.text)


def test_a_page_is_for_light_and_dark_and_for_phones():
    raw = walk_page([take("token")])
    assert "prefers-color-scheme: dark" in raw
    assert "width=device-width" in raw
    assert "@media (max-width" in raw


def test_masked_tokens_show_what_stood_there_and_what_to_say():
    walk = take("token")
    page = walk_page([walk])
    for answer in walk.corrupted_rows[0].targets[0].tokens:
        assert f'<span class="was">{answer.target_token}</span>' in page
        assert f'<span class="says">{answer.target_token}</span>' in page
    assert page.count('class="chip mask" title="masked"') == 6  # three in the input, three in the targets


def test_a_page_says_what_is_a_sample_and_what_part_is_walked():
    bert = next(subject for subject in SUBJECTS if subject.name == "bert")
    words = read(take(bert)).text
    assert "B: a sample sentence; --other gives yours" in words
    assert "walked here: stage 1 of 2, rows of up to 128 tokens" in words


def test_the_grid_has_a_square_for_every_pair():
    walk = take("gpt")
    page = walk_page([walk])
    size = len(walk.row)
    assert page.count('class="seen"') == size * (size + 1) // 2
    assert page.count('class="unseen"') == size * (size - 1) // 2


def test_several_walks_fold_and_each_is_complete():
    walks = [take(subject) for subject in SUBJECTS[:17]]
    page = read(*walks)
    assert page.tags.count("details") == 17
    assert page.tags.count("section") >= 9 * 17
    assert SENTENCE in "".join(page.text)
    assert "higher rate" in "".join(page.text)


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path):
    write_page([take("token")], tmp_path / "walk.html")
    assert (tmp_path / "walk.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(
        InputError, match=r"walk\.html cannot be written \(No such file or directory\)\. Choose another"
    ):
        write_page([take("token")], tmp_path / "missing" / "walk.html")


def test_markup_escapes_attributes_too():
    assert tag("p", "", text("a<b"), title='"><x') == '<p title="&quot;&gt;&lt;x">a&lt;b</p>'

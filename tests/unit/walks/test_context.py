"""What a walk stands on: a corpus's own words, terms and phrases are used as the corpus used them."""

import pytest

from unmask.core.errors import InputError
from unmask.core.records import UnitKind
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.tasks.presets import find_preset
from unmask.walks.context import WalkContext, annotate
from unmask.walks.toy_vocab import other_toy_document, toy_tokenizer
from unmask.walks.walk import WalkTarget, walk

SENTENCE = "使用语言模型来预测下一个词的概率"


@pytest.fixture
def folder(tmp_path):
    """A prepared corpus that holds no shards, only what a walk reads."""
    tokenizer = toy_tokenizer([SENTENCE, other_toy_document(SENTENCE)])
    tokenizer.save(tmp_path / "tokenizer.json")
    layers = (UnitKind.SENTENCE, UnitKind.WORD)
    Manifest(tokenizer.digest, "", layers, {}, Counts(), {}, {}).save(tmp_path / "manifest.json")
    return tmp_path


def take(folder, rule="word", text=SENTENCE, **named):
    ground, subject = WalkContext.corpus(folder), WalkTarget.of_rule(find_preset(rule), find_preset(rule).task)
    document = annotate(text, subject.task.required_units, corpus_units=ground.corpus_units, **named)
    return walk(
        subject, document, ground, annotate(other_toy_document(text), frozenset(), corpus_units=ground.corpus_units)
    )


def units(found):
    return dict(found.units)


def test_a_corpus_with_nothing_of_its_own_is_segmented_as_ever(folder):
    found = take(folder)
    assert units(found)[UnitKind.WORD] == ("使用", "语言", "模型", "来", "预测", "下", "一个", "词", "的", "概率")
    assert not units(found)[UnitKind.PHRASE]
    assert not units(found)[UnitKind.ENTITY]
    assert not found.context.segmentation_note


def test_the_words_terms_and_phrases_of_a_corpus_are_found(folder):
    (folder / "dictionary.txt").write_text("# mine\n语言模型 5000 n\n下一个词\n", encoding="utf-8")
    (folder / "terms.tsv").write_text("概率\tconcept\n", encoding="utf-8")
    (folder / "phrases.txt").write_text("使用 语言模型\n", encoding="utf-8")
    found = take(folder)
    assert units(found)[UnitKind.WORD] == ("使用", "语言模型", "来", "预测", "下一个词", "的", "概率")
    assert units(found)[UnitKind.PHRASE] == ("使用语言模型",)
    assert units(found)[UnitKind.ENTITY] == ("概率",)
    assert found.context.segmentation_note.endswith("with its 2 user words, 1 term, 1 phrase")


def test_rules_choose_the_phrases_and_entities_of_a_corpus(folder):
    (folder / "phrases.txt").write_text("语言 模型\n", encoding="utf-8")
    (folder / "terms.tsv").write_text("下一个词\n", encoding="utf-8")
    phrase = take(folder, "phrase")
    assert (3, 4, 5, 6) in [span.origins for span in phrase.corrupted_rows[0].steps[0].selected_spans]
    assert not phrase.notes
    entity = take(folder, "entity")
    assert (10, 11, 12, 13) in [span.origins for span in entity.corrupted_rows[0].steps[0].selected_spans]
    assert not entity.notes


def test_what_is_named_by_hand_comes_before_what_the_corpus_has(folder):
    (folder / "phrases.txt").write_text("语言 模型\n预测 下\n", encoding="utf-8")
    (folder / "terms.tsv").write_text("语言\n概率\n", encoding="utf-8")
    found = take(folder, phrases=["模型来"], entities=["语言模型"])
    assert units(found)[UnitKind.PHRASE] == ("模型来", "预测下")
    assert units(found)[UnitKind.ENTITY] == ("语言模型", "概率")


def test_names_are_found_where_the_corpus_has_entities(folder):
    text = "小明在北京大学读书"
    assert not units(take(folder, text=text))[UnitKind.ENTITY]
    layers = (UnitKind.SENTENCE, UnitKind.WORD, UnitKind.ENTITY)
    digest = Manifest.load(folder).tokenizer
    Manifest(digest, "", layers, {}, Counts(), {}, {}).save(folder / "manifest.json")
    assert "北京大学" in units(take(folder, text=text))[UnitKind.ENTITY]


def test_a_broken_file_of_a_corpus_is_named(folder):
    (folder / "phrases.txt").write_text("语言\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"phrases.txt:1: a phrase is two or more words"):
        WalkContext.corpus(folder)

"""The table of similar words against a dictionary and plain loops."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.core.errors import CorpusError
from unmask.core.rng import DrawPurpose, Key
from unmask.data.tokenize import word_table
from unmask.data.tokenize.similar_word_table import NO_SIMILAR_WORDS, SimilarWords
from unmask.data.tokenize.word_table import UNKNOWN, WordTable, word_hashes

SPARE = -7
WORD = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def tables(draw):
    """Words with their neighbours as lists, and the table of them."""
    words = draw(st.lists(WORD, unique=True, max_size=30))
    number = st.integers(0, max(len(words) - 1, 0))
    neighbours = [draw(st.lists(number, max_size=4, unique=True)) for _ in words]
    return words, neighbours, SimilarWords.of(words, neighbours)


def flat(words):
    """Words as the lookups take them: ids, starts, and one draw for every token."""
    ids = np.array([token for word in words for token in word], dtype=np.int32)
    starts = np.cumsum([0, *map(len, words)])[:-1]
    return ids, starts, Key.of(1).bits(DrawPurpose.WORD, len(ids))


def cut(ids, words):
    """The words of a flat result again, as tuples."""
    ends = np.cumsum([0, *map(len, words)])
    return [tuple(ids[start:end].tolist()) for start, end in pairwise(ends.tolist())]


def allowed(words, neighbours):
    """What a dictionary says may stand in for each word: neighbours of its length, without itself."""
    return {
        word: {words[other] for other in row if len(words[other]) == len(word) and words[other] != word}
        for word, row in zip(words, neighbours, strict=True)
    }


def same_length(words, word):
    return {other for other in words if len(other) == len(word) and other != word}


@given(tables(), st.lists(WORD, max_size=20))
def test_similar_words_come_from_the_table(table, text):
    words, neighbours, made = table
    near = allowed(words, neighbours)
    ids, starts, draws = flat(text)
    result = cut(made.random_similar(ids, starts, draws, np.full_like(ids, SPARE)), text)
    for word, shown in zip(text, result, strict=True):
        expected = near.get(word) or same_length(words, word) or {(SPARE,) * len(word)}
        assert shown in expected


@given(tables(), st.lists(WORD, max_size=20))
def test_random_words_have_the_same_length_and_are_others(table, text):
    words, _, made = table
    ids, starts, draws = flat(text)
    result = cut(made.random_of_length(ids, starts, draws, np.full_like(ids, SPARE)), text)
    for word, shown in zip(text, result, strict=True):
        assert shown in (same_length(words, word) or {(SPARE,) * len(word)})


@given(tables(), st.lists(WORD, max_size=20))
def test_covered_words_are_those_with_a_neighbour(table, text):
    words, neighbours, made = table
    near = allowed(words, neighbours)
    ids, starts, _ = flat(text)
    assert made.has_similar(ids, starts).tolist() == [bool(near.get(word)) for word in text]


@given(tables(), st.lists(WORD, min_size=1, max_size=12), st.data())
def test_a_word_does_not_depend_on_its_batch(table, text, data):
    _, _, made = table
    ids, starts, draws = flat(text)
    spare = np.arange(len(ids), dtype=np.int32)
    whole = made.random_similar(ids, starts, draws, spare)
    which = data.draw(st.integers(0, len(text) - 1))
    here = slice(int(starts[which]), int(starts[which]) + len(text[which]))
    alone = made.random_similar(ids[here], np.array([0]), draws[here], spare[here])
    assert alone.tolist() == whole[here].tolist()


@pytest.mark.parametrize("exchange", ["random_similar", "random_of_length"])
def test_every_choice_is_drawn_and_none_too_often(exchange):
    words = [(number,) for number in range(9)]
    made = SimilarWords.of(words, [[1, 2, 3]] + [[]] * 8)
    text = [(0,)] * 9000
    ids, starts, draws = flat(text)
    counts = np.bincount(getattr(made, exchange)(ids, starts, draws, ids), minlength=9)
    choices = [1, 2, 3] if exchange == "random_similar" else list(range(1, 9))
    assert np.flatnonzero(counts).tolist() == choices
    expected = 9000 / len(choices)
    assert np.abs(counts[choices] - expected).max() < 5 * expected**0.5


def test_spare_tokens_are_not_overwritten_in_place():
    ids, starts, draws = flat([(1,), (2,)])
    spare = np.array([8, 9], dtype=np.int32)
    assert NO_SIMILAR_WORDS.random_similar(ids, starts, draws, spare).tolist() == [8, 9]
    SimilarWords.of([(1,), (2,)], [[1], [0]]).random_similar(ids, starts, draws, spare)
    assert spare.tolist() == [8, 9]


@pytest.mark.parametrize("modulus", [1, 2, 5])
@given(words=st.lists(WORD, unique=True, max_size=25), text=st.lists(WORD, max_size=25))
@settings(max_examples=40)
def test_words_that_share_a_hash_are_told_apart(modulus, words, text):
    def weak(ids, starts):
        length = np.diff(np.append(starts, len(ids))).astype(np.uint64)
        return (length << np.uint64(48)) | (word_hashes(ids, starts) % np.uint64(modulus))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_table, "word_hashes", weak)
        ids, starts, _ = flat(words)
        made = WordTable.of(ids, np.append(starts, len(ids)))
        ids, starts, _ = flat(text)
        found = made.find(ids, starts)
    for word, number in zip(text, found.tolist(), strict=True):
        assert (number != UNKNOWN) == (word in words)
        assert number == UNKNOWN or tuple(made.word(number).tolist()) == word


@given(st.lists(WORD, unique=True, max_size=20), st.data())
def test_part_of_a_lexicon(words, data):
    ids, starts, _ = flat(words)
    whole = WordTable.of(ids, np.append(starts, len(ids)))
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words))), dtype=np.bool_)
    part, number = whole.select(keep)
    assert len(part) == keep.sum()
    for here, there in enumerate(number.tolist()):
        assert (there != UNKNOWN) == keep[here]
        assert there == UNKNOWN or part.word(there).tolist() == whole.word(here).tolist()


def test_lexicon_refuses_what_it_cannot_hold():
    with pytest.raises(ValueError, match="twice"):
        WordTable.of(np.array([1, 2, 1, 2], np.int32), np.array([0, 2, 4]))
    with pytest.raises(ValueError, match="1 to"):
        WordTable.of(np.array([1], np.int32), np.array([0, 0, 1]))


def save(folder, table, tokenizer, version=1):
    folder.mkdir(exist_ok=True)
    for name, array in table.arrays().items():
        np.save(folder / f"{name}.npy", array)
    (folder / "table.json").write_text(json.dumps({"format": version, "tokenizer": tokenizer}))


def test_a_saved_table_comes_back(tmp_path):
    table = SimilarWords.of([(1, 2), (3, 4), (5,), (6,), (5, 6)], [[1, 4], [0], [3], [], [0]])
    save(tmp_path / "t", table, "digest")
    back = SimilarWords.load(tmp_path / "t", "digest")
    assert back.arrays().keys() == table.arrays().keys()
    for name, array in table.arrays().items():
        assert np.array_equal(back.arrays()[name], array)


def test_a_saved_table_does_not_depend_on_the_hash(tmp_path, monkeypatch):
    words, neighbours = [(1, 2), (3, 4), (5, 6), (7, 8)], [[1], [2], [3], [0]]
    save(tmp_path / "t", SimilarWords.of(words, neighbours), "digest")
    monkeypatch.setattr(word_table, "word_hashes", lambda ids, starts: ~word_hashes(ids, starts))
    back = SimilarWords.load(tmp_path / "t", "digest")
    ids, starts, draws = flat(words)
    shown = cut(back.random_similar(ids, starts, draws, ids), words)
    assert shown == [words[row[0]] for row in neighbours]


@pytest.mark.parametrize("wrong", ["tokenizer", "format", "missing", "array", "numbers", "json"])
def test_a_table_that_does_not_fit_is_refused_with_a_sentence(tmp_path, wrong):
    folder, table = tmp_path / "t", SimilarWords.of([(1,), (2,)], [[1], [0]])
    save(folder, table, "another" if wrong == "tokenizer" else "digest", 0 if wrong == "format" else 1)
    if wrong == "missing":
        (folder / "rows.npy").unlink()
    elif wrong == "array":
        (folder / "tokens.npy").write_bytes(b"no array")
    elif wrong == "numbers":
        np.save(folder / "neighbours.npy", np.array([1, 5]))
    elif wrong == "json":
        (folder / "table.json").write_text("[]")
    with pytest.raises(CorpusError, match="unmask similar-words") as caught:
        SimilarWords.load(folder, "digest")
    assert str(folder) in str(caught.value)

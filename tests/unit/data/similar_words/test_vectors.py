"""Word vectors of a small corpus: counting, training, neighbours, synonyms, the table and its folder."""

import gzip
import hashlib
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_words import ANIMALS, LONG, PIECES, TOOLS, make_corpus, make_tokenizer, sentences

from unmask.core.errors import CorpusError, InputError
from unmask.core.records import UnitKind
from unmask.data.similar_words.build_table import build_table, measure_coverage, preview
from unmask.data.similar_words.config import NeighbourSource, TableConfig, VectorConfig
from unmask.data.similar_words.nearest import NeighbourPairs, find_nearest, keep_best, top_k_columns
from unmask.data.similar_words.store import FOLDER_NAME, save_table, vectors_lock
from unmask.data.similar_words.synonyms import read_groups, synonym_pairs
from unmask.data.similar_words.train_vectors import NO_VECTORS, WordVectors, train_vectors
from unmask.data.similar_words.word_counts import _vocabulary, count_corpus_words, sentence_blocks
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.train import train_tokenizer as learn
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.vocab import with_similar_words

TOKENIZER = make_tokenizer()
TEXTS = tuple(sentences(60))
QUICK = VectorConfig(dim=16, epochs=12, window=3)


def small(shards=1):
    return make_corpus(TEXTS, TOKENIZER, shards)


def vocabulary_of(texts, min_count=1):
    return count_corpus_words(make_corpus(texts, TOKENIZER), TOKENIZER, min_count)


def ids_of(word):
    return np.array(TOKENIZER.pipeline.encode(word, add_special_tokens=False).ids, dtype=np.int32)


def stand_ins_of(table, vocabulary, word):
    found = dict(preview(vocabulary, table, len(table)))
    return set(found[word])


@pytest.mark.parametrize(("shards", "size"), [(1, 1 << 18), (3, 50), (2, 1)])
def test_running_text_is_the_corpus_sentence_by_sentence(shards, size):
    read = []
    for part in sentence_blocks(small(shards), size):
        ends = np.append(part.word_starts, len(part.ids))
        words = [TOKENIZER.decode(part.ids[a:b]) for a, b in pairwise(ends.tolist())]
        read += [" ".join(words[a:b]) for a, b in pairwise(part.sentence_starts.tolist())]
    assert read == list(TEXTS)


def test_words_are_needed():
    corpus = make_corpus(TEXTS, TOKENIZER, layers=(UnitKind.SENTENCE,))
    with pytest.raises(CorpusError, match="prepared without them"):
        next(sentence_blocks(corpus))


@pytest.mark.parametrize("shards", [1, 4])
def test_counts_are_those_of_a_loop(shards):
    counted = count_corpus_words(small(shards), TOKENIZER, 1)
    expected = Counter(word for text in TEXTS for word in text.split())
    assert dict(zip(counted.spellings, counted.counts.tolist(), strict=True)) == expected
    assert counted.num_running_words == expected.total()
    assert counted.num_sentences == len(TEXTS)
    assert list(counted.frequencies().values()) == sorted(expected.values(), reverse=True)


def test_rare_and_unknown_words_are_left_out():
    vocabulary = vocabulary_of(["the cat , the dog 7 zebra zebra the cat"], min_count=2)
    assert set(vocabulary.spellings) == {"the", "cat"}
    with pytest.raises(CorpusError, match="Lower --min-count"):
        vocabulary_of(["the cat"], min_count=2)


def test_too_many_different_words_cost_the_rare_ones_alone():
    corpus = make_corpus(["the the the the cat cat cat dog dog cow"], TOKENIZER)
    assert set(count_corpus_words(corpus, TOKENIZER, 1, max_words=2).spellings) == {"the", "cat"}


def test_punctuation_and_numbers_are_no_words_to_exchange():
    vocabulary = vocabulary_of(["the cat , 7 人物"])
    assert dict(zip(vocabulary.spellings, vocabulary.is_exchangeable.tolist(), strict=True)) == {
        "the": True,
        "cat": True,
        ",": False,
        "7": False,
        "人物": True,
    }


@pytest.fixture(scope="module", params=[NeighbourSource.SKIP_GRAM, NeighbourSource.CBOW, NeighbourSource.FASTTEXT])
def trained(request):
    heard = []
    corpus = small()
    vocabulary = count_corpus_words(corpus, TOKENIZER, 5)
    how = VectorConfig(request.param, dim=16, epochs=12, window=3)
    vectors = train_vectors(corpus, vocabulary, how, 1, lambda *now: heard.append(now))
    return vocabulary, vectors, heard


def test_every_spelling_has_a_vector_and_progress_is_told(trained):
    vocabulary, vectors, heard = trained
    frequencies = vocabulary.frequencies()
    assert set(vectors.spellings) == set(frequencies)
    assert [frequencies[spelling] for spelling in vectors.spellings] == sorted(frequencies.values(), reverse=True)
    assert vectors.matrix.shape == (len(vectors.spellings), 16)
    assert np.isfinite(vectors.matrix).all()
    assert heard == [(epoch, epoch * vocabulary.num_running_words) for epoch in range(1, 13)]


def test_learned_stand_ins_keep_their_length(trained):
    vocabulary, vectors, _ = trained
    table = build_table(vocabulary, vectors, (), TOKENIZER, TableConfig(5, 3, -1))
    assert len(table) == vocabulary.is_exchangeable.sum()
    for word, others in preview(vocabulary, table, 100):
        assert word not in others
        assert all(len(ids_of(other)) == len(ids_of(word)) for other in others)
        assert not {",", "7"} & {word, *others}
    assert stand_ins_of(table, vocabulary, "puppy") == {"kitten"}


def test_words_in_the_same_company_are_similar():
    corpus = small()
    vocabulary = count_corpus_words(corpus, TOKENIZER, 5)
    vectors = train_vectors(corpus, vocabulary, VectorConfig(dim=16, epochs=40, window=3), 1, lambda *_: None)
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    animals, tools = (unit[[vectors.spellings.index(word) for word in words]] for words in (ANIMALS, TOOLS))
    assert min((animals @ animals.T).mean(), (tools @ tools.T).mean()) > (animals @ tools.T).mean() + 0.03


def digests():
    """Of vectors trained in this process."""
    corpus = small()
    vocabulary = count_corpus_words(corpus, TOKENIZER, 5)
    for method in (NeighbourSource.CBOW, NeighbourSource.FASTTEXT):
        vectors = train_vectors(corpus, vocabulary, replace(QUICK, method=method), 1, lambda *_: None)
        yield hashlib.sha256(vectors.matrix.tobytes() + " ".join(vectors.spellings).encode()).hexdigest()


def test_another_process_trains_the_same_vectors():
    """Python hashes strings differently in every process; the vectors must not notice."""
    places = [str(Path(__file__).parent), *sys.path]
    code = f"import sys; sys.path = {places!r}; import test_vectors as t; print(*t.digests())"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}  # all else as here: OPENBLAS_CORETYPE changes last digits
    there = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    here = list(digests())
    assert there.stdout.decode().split() == here
    assert len(set(here)) == 2


def nearest_by_loop(vectors, kinds, same, count, at_least):
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    for word in range(len(vectors)):
        near = [(float(unit[word] @ unit[other]), other) for other in range(len(vectors))]
        near = [(c, o) for c, o in near if kinds[o] == kinds[word] and same[o] != same[word] and c >= at_least]
        yield word, [cosine for cosine, _ in sorted(near, reverse=True)[:count]]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 6), st.sampled_from([-1.0, 0.0, 0.3]))
def test_nearest_words_are_those_of_a_loop(seed, size, count, at_least):
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(size, 4)).astype(np.float32)
    kinds, same = draw.integers(0, 3, size), draw.integers(0, max(1, size // 2), size)
    links = find_nearest(vectors, kinds, same, count, at_least)
    assert (kinds[links.word] == kinds[links.other]).all()
    assert (same[links.word] != same[links.other]).all()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for word, expected in nearest_by_loop(vectors, kinds, same, count, at_least):
        found = links.other[links.word == word]
        assert len(set(found.tolist())) == len(found) == len(expected)
        np.testing.assert_allclose(unit[found] @ unit[word], expected, atol=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.data())
def test_the_largest_numbers_of_a_row(seed, columns, data):
    scores = np.random.default_rng(seed).integers(0, 50, (4, columns)).astype(np.float32)
    count = data.draw(st.integers(1, columns))
    found = top_k_columns(scores, count)
    assert found.shape == (4, count)
    for row, best in zip(scores, found, strict=True):
        assert len(set(best.tolist())) == count
        assert sorted(row[best]) == sorted(row)[-count:]


def test_blocks_do_not_change_the_neighbours(monkeypatch):
    vectors = np.random.default_rng(3).normal(size=(50, 4)).astype(np.float32)
    kinds, same = np.zeros(50, np.int64), np.arange(50)
    whole = find_nearest(vectors, kinds, same, 5, -1)
    monkeypatch.setattr("unmask.data.similar_words.nearest._CELLS", 150)
    parts = find_nearest(vectors, kinds, same, 5, -1)
    assert np.array_equal(whole.word, parts.word)
    assert np.array_equal(whole.other, parts.other)


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=25)


@given(PAIRS, PAIRS, st.integers(1, 4))
def test_merging_keeps_the_first_part_first(first, second, count):
    parts = [NeighbourPairs(*np.array(pairs, np.int64).reshape(-1, 2).T) for pairs in (first, second)]
    links = keep_best(parts, 7, count)
    for word in range(7):
        expected = list(dict.fromkeys(other for here, other in first + second if here == word))[:count]
        assert links.other[links.word == word].tolist() == expected


def test_synonym_files(tmp_path):
    path = tmp_path / "synonyms.txt"
    coded = "Aa01A01= 人 士 人物\nAa01B03# 良民 顺民\nAa01C05@ 众学生\n"
    path.write_text(f"\ufeff# a comment\n{coded}\ncat,dog\tcow,cat\r\nC# C-sharp\nlonely\n", encoding="utf-8")
    expected = (("人", "士", "人物"), ("cat", "dog", "cow"), ("C#", "C-sharp"))
    assert read_groups(path) == expected
    packed = tmp_path / "synonyms.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    assert read_groups(packed) == expected


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"cat dog\n\xff\xfe\n", r"a.txt:2: .*UTF-8"),
        ("b.txt", b"cat\n# dog hen\n", "holds no synonyms"),
        ("c.gz", gzip.compress(b"cat dog\n" * 99, mtime=0)[:-9], "cannot be read"),
        ("d.gz", b"cat dog\n", "cannot be read"),
    ],
)
def test_bad_synonym_files_are_named(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_groups(tmp_path / name)
    with pytest.raises(InputError, match=r"there is no such file: .*nowhere\.txt\.$"):
        read_groups(tmp_path / "nowhere.txt")


def test_synonyms_are_words_of_the_corpus_with_as_many_tokens():
    vocabulary = vocabulary_of(["人物 人 士 cat dog puppy , 7"])
    groups = (("人", "士", "人物"), ("cat", "puppy", "hen", "dog"), ("人", "cat"), (",", "7"))
    links = synonym_pairs(groups, vocabulary, TOKENIZER)
    spelled = [(vocabulary.spellings[a], vocabulary.spellings[b]) for a, b in zip(links.word, links.other, strict=True)]
    assert spelled == [("人", "士"), ("士", "人"), ("cat", "dog"), ("dog", "cat"), ("人", "cat"), ("cat", "人")]


def test_synonyms_come_before_learned_neighbours():
    vocabulary = vocabulary_of(["cat dog cow hen"])
    # Directions of 0, 20, 50 and 180 degrees, and so many that point back that their mean is zero.
    angles = np.radians([0, 20, 50, 180])
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    spellings = ("cat", "dog", "cow", "hen", "a", "b", "c", "d")
    near = WordVectors(spellings, np.concatenate([around, -around]))
    table = build_table(vocabulary, near, (("cat", "hen"),), TOKENIZER, TableConfig(1, 2, 0.5))
    assert dict(preview(vocabulary, table, 4)) == {
        "cat": ("hen", "dog"),
        "dog": ("cat", "cow"),
        "cow": ("dog", "cat"),
        "hen": ("cat",),
    }


def alike(*spellings):
    """Vectors that point nearly the same way, and one far off so that their mean does not take it away."""
    same = np.tile([1.0, 0.1], (len(spellings), 1)) + np.arange(len(spellings))[:, None] / 100
    return WordVectors((*spellings, "far"), np.concatenate([same, -same.sum(axis=0, keepdims=True)]).astype(np.float32))


def test_function_words_are_neighbours_only_where_a_synonym_file_says_so():
    vocabulary = vocabulary_of(["the is cat dog"])
    vectors = alike("the", "is", "cat", "dog")
    learned = build_table(vocabulary, vectors, (), TOKENIZER, TableConfig(1))
    assert dict(preview(vocabulary, learned, 9)) == {"cat": ("dog",), "dog": ("cat",)}
    given = build_table(vocabulary, vectors, (("the", "is"),), TOKENIZER, TableConfig(1))
    assert dict(preview(vocabulary, given, 9)) == {"cat": ("dog",), "dog": ("cat",), "the": ("is",), "is": ("the",)}
    alone = vocabulary_of(["the is"])
    assert len(build_table(alone, alike("the", "is"), (), TOKENIZER, TableConfig(1)).neighbours) == 0


def test_learned_neighbours_are_of_the_same_script():
    vocabulary = vocabulary_of(["人 士 cat dog"])
    table = build_table(vocabulary, alike("人", "士", "cat", "dog"), (), TOKENIZER, TableConfig(1))
    assert dict(preview(vocabulary, table, 9)) == {"cat": ("dog",), "dog": ("cat",), "人": ("士",), "士": ("人",)}


def test_coverage_adds_up():
    vocabulary = vocabulary_of(["the cat , 7 cat dog dog hen zebra the"], min_count=1)
    table = build_table(vocabulary, NO_VECTORS, (("cat", "dog"),), TOKENIZER, TableConfig(1))
    found = measure_coverage(vocabulary, table)
    assert (found.with_similar, found.without_similar, found.function_words, found.punctuation) == (0.4, 0.1, 0.2, 0.2)
    assert found.rare == pytest.approx(0.1)


def test_a_saved_table_is_found_beside_the_shards_and_replaced_whole(tmp_path):
    first, second = SimilarWords.of([(1,), (2,)], [[1], [0]]), SimilarWords.of([(3,), (4,), (5,)], [[1], [2], [0]])
    (tmp_path / f".{FOLDER_NAME}.99999").mkdir()
    vocab = TOKENIZER.vocab
    assert with_similar_words(vocab, tmp_path / FOLDER_NAME, "digest") is vocab
    for table in (first, second):
        with vectors_lock(tmp_path):
            save_table(tmp_path, table, WordVectors(("cat",), np.ones((1, 2), np.float32)), "digest", {"dim": 2})
        stored = with_similar_words(vocab, tmp_path / FOLDER_NAME, "digest").similar_words
        assert np.array_equal(stored.words.tokens, table.words.tokens)
        assert [path.name for path in tmp_path.iterdir()] == [FOLDER_NAME]
    assert (tmp_path / FOLDER_NAME / "words.txt").read_text() == "cat\n"
    assert np.load(tmp_path / FOLDER_NAME / "vectors.npy").tolist() == [[1, 1]]


def test_a_failed_save_leaves_the_old_table(tmp_path, monkeypatch):
    table = SimilarWords.of([(1,), (2,)], [[1], [0]])
    save_table(tmp_path, table, NO_VECTORS, "digest", {})
    monkeypatch.setattr("unmask.data.similar_words.store.write_versioned_json", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_table(tmp_path, SimilarWords.of([(9,)], [[]]), NO_VECTORS, "digest", {})
    assert [path.name for path in tmp_path.iterdir()] == [FOLDER_NAME]
    assert len(SimilarWords.load(tmp_path / FOLDER_NAME, "digest")) == 2


def test_a_save_that_fails_between_two_names_leaves_the_old_table(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    table = SimilarWords.of([(1,), (2,)], [[1], [0]])
    save_table(tmp_path, table, NO_VECTORS, "digest", {})
    monkeypatch.setattr("unmask.core.io.atomic._rename_into_place", fail)
    with pytest.raises(KeyboardInterrupt):
        save_table(tmp_path, SimilarWords.of([(9,)], [[]]), NO_VECTORS, "digest", {})
    assert [path.name for path in tmp_path.iterdir()] == [FOLDER_NAME]
    assert len(SimilarWords.load(tmp_path / FOLDER_NAME, "digest")) == 2


def test_a_save_that_was_killed_between_two_names_loses_no_table(tmp_path):
    save_table(tmp_path, SimilarWords.of([(1,), (2,)], [[1], [0]]), NO_VECTORS, "digest", {})
    (tmp_path / FOLDER_NAME).rename(tmp_path / f".{FOLDER_NAME}.old")
    (tmp_path / f".{FOLDER_NAME}.12345").mkdir()
    with vectors_lock(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [FOLDER_NAME]
    assert len(SimilarWords.load(tmp_path / FOLDER_NAME, "digest")) == 2


def test_two_processes_do_not_share_a_folder(tmp_path):
    with vectors_lock(tmp_path), pytest.raises(CorpusError, match="Another process"), vectors_lock(tmp_path):
        pass


def test_the_small_corpus_is_what_the_tests_think():
    assert [len(ids_of(word)) for word in (*ANIMALS, *TOOLS)] == [1] * 7
    assert [len(ids_of(word)) for word in LONG] == [2, 2]
    assert len(set(PIECES)) == len(PIECES)


@pytest.mark.parametrize("spec", [ByteBPE(size=400), Unigram(size=60)])
def test_a_word_after_a_space_is_exchanged_for_one_after_a_space(spec):
    """In these vocabularies " cat" and "cat" are different tokens of one spelling."""
    tokenizer = learn(spec, ["the cat (cat) the dog (dog) ( cat ) ( dog )"] * 20)
    texts = [" cat", "cat", " dog", "dog"]
    encoded = [tokenizer.pipeline.encode(f"({text}", add_special_tokens=False).ids for text in texts]
    before = len(tokenizer.pipeline.encode("(", add_special_tokens=False).ids)
    words = [np.array(ids[before:], dtype=np.int32) for ids in encoded]
    vocabulary = _vocabulary([(word, 1) for word in words], tokenizer, 4, 1)
    number = vocabulary.words.find(np.concatenate(words), np.cumsum([0, *map(len, words)])[:-1])
    assert [vocabulary.spellings[place] for place in number] == ["cat", "cat", "dog", "dog"]
    spaced, bare, other_spaced, other_bare = vocabulary.kinds[number].tolist()
    assert spaced == other_spaced
    assert bare == other_bare
    assert spaced != bare

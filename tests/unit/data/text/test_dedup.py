"""Duplicates: exact ones always, near ones by the promised curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.core.records import Document
from unmask.data.text.dedup import ExactDeduplicator, MinHashConfig, NearDeduplicator, hash_text
from unmask.data.text.hash_set import HashSet64


def document(text: str) -> Document:
    return Document("d", text)


def words(start: int, stop: int) -> str:
    return " ".join(f"w{number * 7919 % 100_003}" for number in range(start, stop))


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(1, 8))
def test_the_set_answers_like_a_set(numbers: list[int], waiting: int) -> None:
    digests = HashSet64(waiting)
    oracle: set[int] = set()
    for number in numbers:
        assert digests.contains_any([number]) == (number in oracle)
        digests.add([number])
        oracle.add(number)
    assert digests.save().tolist() == sorted(oracle)
    again = HashSet64.load(digests.save(), waiting)
    assert [again.contains_any([n]) for n in range(42)] == [n in oracle for n in range(42)]


def test_numbers_of_the_whole_range_are_kept_apart() -> None:
    digests = HashSet64(buffer_size=2)
    big = 2**64 - 1
    digests.add([big, 2**63, 2**53])
    assert digests.contains_any([big])
    assert not digests.contains_any([big - 1, 2**63 + 1, 2**53 + 1])


def test_exact_duplicates_are_seen_the_second_time() -> None:
    seen = ExactDeduplicator(HashSet64(buffer_size=3))
    texts = ["一", "二", "一", "三", "四", "五", "二", "\ud800", "\ud800"]
    assert [seen.check_and_add(document(text)) for text in texts] == [
        False,
        False,
        True,
        False,
        False,
        False,
        True,
        False,
        True,
    ]


def test_a_digest_computed_elsewhere_counts_the_same() -> None:
    seen = ExactDeduplicator()
    assert not seen.check_and_add(document("a"))
    assert seen.check_and_add_digest(hash_text("a"))


def test_a_given_empty_set_is_used_and_filled() -> None:
    known = HashSet64()
    ExactDeduplicator(known).check_and_add(document("a"))
    assert len(known) == 1


def test_near_duplicates_are_seen_and_different_texts_are_not() -> None:
    seen = NearDeduplicator()
    text = words(0, 400)
    assert not seen.check_and_add(document(text))
    assert seen.check_and_add(document(text.replace("w7919 ", "other ").upper()))
    assert not seen.check_and_add(document(words(1000, 1400)))
    assert not seen.check_and_add(document(words(300, 700)))


@pytest.mark.parametrize("text", ["", "a", "好", "ab cd"])
def test_short_texts_are_compared_too(text: str) -> None:
    seen = NearDeduplicator()
    assert not seen.check_and_add(document(text))
    assert seen.check_and_add(document(f" {text} "))
    assert not seen.check_and_add(document("something else"))


def test_signatures_agree_as_often_as_texts_share_shingles() -> None:
    rule = MinHashConfig(num_hashes=512)
    for overlap in (100, 200, 300):
        one, two = words(0, 400), words(400 - overlap, 800 - overlap)
        sets = [{text[i : i + 5] for i in range(len(text) - 4)} for text in (one, two)]
        truth = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
        agree = float(np.mean(rule.signature(one) == rule.signature(two)))
        assert abs(agree - truth) < 0.09  # four standard deviations of 512 draws


def test_bands_move_with_the_threshold() -> None:
    strict, loose = MinHashConfig(threshold=0.9).bands(), MinHashConfig(threshold=0.4).bands()
    assert strict[1] > loose[1]
    assert strict[0] * strict[1] <= 128


def test_a_threshold_outside_its_range_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"--near-duplicate-threshold takes a number between 0 and 1, found 2\.0\."):
        MinHashConfig(threshold=2.0)
    with pytest.raises(RecipeError, match="at least 2 hashes, found 5 and 1"):
        MinHashConfig(num_hashes=1)

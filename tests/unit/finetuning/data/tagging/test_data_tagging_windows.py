"""Words as rows of tokens: first pieces, windows, and words of which tokenising leaves nothing."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.core.errors import InputError
from unmask.core.ragged import offsets
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.tagging.sentences import TaggedSentence
from unmask.finetuning.data.tagging.windows import encode_words, word_windows

TOKENIZER = train_tokenizer(WordPiece(60, min_count=1), ("90123456789 1 2 3 4 5 6 7 8", "今天天气 we liked it a lot"))
"""Digits inside a number are pieces of their own."""


def sheet_of(*sentences: tuple[str, ...]) -> ExampleSet[TaggedSentence]:
    return ExampleSet(
        "f", tuple(map(TaggedSentence, sentences)), tuple(f"f:{n}" for n, _ in enumerate(sentences, start=1))
    )


def pieces_at(sheet, length=24, tokenizer=TOKENIZER):
    """The token at the place of every word, and all rows as tokens."""
    exercise, places = encode_words(sheet, tokenizer, LengthLimits(length))
    first = tokenizer.ids_to_tokens(exercise.rows.ids[places.token_indices(exercise.rows.offsets)])
    return first, [
        tokenizer.ids_to_tokens(exercise.rows.take(np.array([row])).ids) for row in range(len(exercise.rows))
    ]


def test_each_word_stands_at_its_first_piece():
    first, rows = pieces_at(sheet_of(("we", "liked", "今", "天", "12"), ("lot",)))
    assert rows[0][0] == "[CLS]"
    assert [row[-1] for row in rows] == ["[SEP]", "[SEP]"]
    assert [piece[0] for piece in first] == ["w", "l", "今", "天", "1", "l"]
    assert rows[0][-3:] == ["1", "##2", "[SEP]"]
    assert not any(piece.startswith("##") for piece in first)


def test_words_of_which_nothing_is_left_become_unknown():
    first, rows = pieces_at(sheet_of(("\u200b", "天", "\x01", " ", "\u3000")))
    assert first == ["[UNK]", "天", "[UNK]", "[UNK]", "[UNK]"]
    assert rows == [["[CLS]", "[UNK]", "天", "[UNK]", "[UNK]", "[UNK]", "[SEP]"]]


def test_a_word_that_spells_a_special_token_is_a_word():
    first, rows = pieces_at(sheet_of(("[SEP]", "[MASK]")))
    assert rows[0].count("[SEP]") == 1
    assert "[MASK]" not in rows[0]
    assert len(first) == 2


def test_long_sentences_become_windows_and_no_word_is_lost():
    words = tuple("0123456789" * 7)
    sheet = sheet_of(("天",), words, ("今", "天"))
    first, rows = pieces_at(sheet, length=16)
    assert first == ["天", *words, "今", "天"]
    assert max(map(len, rows)) == 16
    exercise, _ = encode_words(sheet, TOKENIZER, LengthLimits(16))
    assert "sentences longer than a row: 1 of 3; they are read through sliding windows" in exercise.notes[0]
    assert f"{len(rows)} rows in all" in exercise.notes[0]


def test_rows_that_suffice_need_no_note():
    assert encode_words(sheet_of(("天",)), TOKENIZER, LengthLimits(16))[0].notes == ()


@pytest.mark.parametrize("seed", range(10))
def test_each_word_belongs_to_the_window_with_most_context(seed):
    """Against an oracle that looks at every window; a text that ends there is no lack of context."""
    length = np.random.default_rng(seed).integers(1, 5, size=60)
    begin, most = offsets(length), 20
    found = list(word_windows(begin, 5, 55, most))
    owner = [number for number, window in enumerate(found) for _ in range(window.first, window.last)]
    assert [word for window in found for word in range(window.first, window.last)] == list(range(5, 55))
    assert all(0 < begin[window.end] - begin[window.start] <= most for window in found)

    def context(word, window):
        if not window.start <= word < window.end:
            return -1
        left = begin[word] - begin[window.start] if window.start > 5 else np.inf
        right = begin[window.end] - begin[word + 1] if window.end < 55 else np.inf
        return min(left, right)

    for word, number in zip(range(5, 55), owner, strict=True):
        assert context(word, found[number]) == max(context(word, window) for window in found)
        assert context(word, found[number]) >= most // 4 - 4  # a word less than a quarter of a window


def test_a_word_longer_than_a_row_keeps_its_beginning():
    sheet = sheet_of(("天", "0123456789" * 9, "气"))
    first, rows = pieces_at(sheet, length=16)
    assert [first[0], first[2]] == ["天", "气"]
    assert first[1].startswith("0")
    assert max(map(len, rows)) <= 16
    assert "words with more tokens than half a row: 1" in encode_words(sheet, TOKENIZER, LengthLimits(16))[0].notes[-1]


def test_half_a_character_is_refused_with_its_line():
    with pytest.raises(InputError, match=r"f:2: .*surrogate"):
        encode_words(sheet_of(("天",), ("\ud83d",)), TOKENIZER, LengthLimits(16))


def test_where_a_space_belongs_to_the_next_word_it_is_there():
    tokenizer = train_tokenizer(ByteBPE(300), ("we liked it a lot", "we hated it a lot") * 4)
    first, rows = pieces_at(sheet_of(("we", "liked", "it")), tokenizer=tokenizer)
    assert "".join(rows[0][1:-1]) == "we liked it"
    assert [piece[0] for piece in first] == ["w", " ", " "]

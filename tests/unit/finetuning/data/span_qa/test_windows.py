"""Windows over passages: what stands in a row, where the answer is, and which characters a span of tokens covers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.span_qa.answers import AnswerText
from unmask.finetuning.data.span_qa.decode import best_spans, is_max_context
from unmask.finetuning.data.span_qa.questions import QAExample
from unmask.finetuning.data.span_qa.windows import WindowSizes, encode_windows, find_answer_tokens, piece_between

PASSAGE = "The café in Zürich —ＦＵＬＬ width— sold 12,5 € of 咖啡☕️ and 茶 to Łukasz 👩‍🚀 in cafe\u0301s."
WORDS = train_tokenizer(WordPiece(300, min_count=1), [PASSAGE.replace("茶", "").replace("👩‍🚀", "")] * 3)
BYTES = train_tokenizer(ByteBPE(600), [PASSAGE] * 3)


def sheet_of(*questions):
    return ExampleSet("file", tuple(questions), tuple(f"file:{i}" for i in range(len(questions))))


def asked(passage, answer="", question="谁？", id="q"):
    pieces = (AnswerText(answer, passage.index(answer)),) if answer else ()
    return QAExample(id, question, passage, pieces, is_impossible=not answer)


@pytest.mark.parametrize("tokenizer", [WORDS, BYTES], ids=["words", "bytes"])
@pytest.mark.parametrize(
    "answer",
    [
        "café",
        "Zürich",
        "ＦＵＬＬ",
        "12,5 €",
        "咖啡☕️",
        "茶",
        "Łukasz 👩‍🚀",
        "cafe\u0301s",
        "The café in Zürich",
        "👩‍🚀",
    ],
)
def test_an_answer_comes_back_to_the_letter(tokenizer, answer):
    tokens = Encoder(tokenizer).encode_text(PASSAGE)
    start = PASSAGE.index(answer)
    first, last = find_answer_tokens(tokens, start, start + len(answer))
    assert piece_between(PASSAGE, tokens, first, last) == (start, answer)


def test_an_accent_that_the_tokenizer_strips_stays_with_the_last_letter():
    text = "a cafe\u0301 b"
    tokens = Encoder(WORDS).encode_text(text)
    assert piece_between(text, tokens, *find_answer_tokens(tokens, 2, 7)) == (2, "cafe\u0301")


def test_an_answer_inside_a_word_takes_the_tokens_that_hold_it():
    tokens = Encoder(WORDS).encode_text("Zürich")
    first, last = find_answer_tokens(tokens, 1, 2)
    assert tokens.starts[first] <= 1 < tokens.ends[last]


def test_rows_hold_question_and_window_between_their_special_tokens():
    question = asked("咖啡 and 茶", "茶", question="of to")
    exercise = encode_windows(sheet_of(question), "span", WORDS, LengthLimits(32))
    (target,) = exercise.take(np.array([0])).targets
    shown = WORDS.ids_to_tokens(exercise.rows.ids)
    assert shown[:3] == ["[CLS]", "of", "to"]
    assert shown[3] == shown[-1] == "[SEP]"
    assert exercise.rows.segment.tolist() == [0] * 4 + [1] * (len(shown) - 4)
    assert target.start.tolist() == target.end.tolist() == [len(shown) - 2]
    assert exercise.notes == ()


def test_windows_cover_every_token_and_point_at_the_answer_where_they_hold_it():
    passage = " ".join(str(number % 10) for number in range(100))
    question = QAExample("q", "of?", passage, (AnswerText(passage[60:67], 60),))
    exercise = encode_windows(sheet_of(question, asked(passage, id="none")), "span", WORDS, LengthLimits(30))
    windows, rows = exercise.targets, exercise.rows
    assert exercise.rows.lengths.max() == 30
    mine = windows.question == 0
    covered = {begin + i for begin, n in zip(windows.begin[mine], windows.count[mine], strict=True) for i in range(n)}
    assert covered == set(range(len(windows.passages[0].ids)))
    assert set(np.diff(windows.begin[mine])) == {10}
    first, last = find_answer_tokens(windows.passages[0], 60, 67)
    (target,) = exercise.take(np.arange(len(rows))).targets
    for row, (start, end) in enumerate(zip(target.start, target.end, strict=True)):
        holds = mine[row] and windows.begin[row] <= first and last < windows.begin[row] + windows.count[row]
        assert (start > rows.offsets[row]) == holds
        if holds:
            assert (rows.ids[start : end + 1] == windows.passages[0].ids[first : last + 1]).all()
        else:
            assert start == end == rows.offsets[row]
    assert (target.start > rows.offsets[:-1]).sum() > 1  # windows overlap, so several hold the answer
    assert exercise.notes[0].startswith("2 of 2 questions have a passage longer than a row")


def test_long_questions_are_cut_and_answers_longer_than_a_window_are_told():
    passage = " ".join("茶" for _ in range(40))
    exercise = encode_windows(sheet_of(asked(passage, passage, question="of " * 40)), "span", WORDS, LengthLimits(24))
    assert exercise.rows.lengths.max() == 24
    assert "1 questions were truncated to 10 tokens" in exercise.notes
    assert any("1 answers fit into no window" in note for note in exercise.notes)


@pytest.mark.parametrize(("tokens", "question"), [(0, 0), (1, 3), (317, 64), (318, 64), (445, 64), (2000, 9)])
def test_windows_begin_until_the_last_token_is_seen(tokens, question):
    sizes = WindowSizes.of(LengthLimits(384))
    begins, window = sizes.window_starts(tokens, question), sizes.max_window - question
    assert begins == [128 * i for i in range(len(begins))]
    assert begins[-1] + window >= tokens
    assert len(begins) == 1 or begins[-2] + window < tokens


def test_a_token_belongs_to_the_window_where_its_poorer_side_is_richest():
    owns = is_max_context(np.array([0, 4, 8]), np.array([8, 8, 8]))
    assert owns.sum(axis=0).tolist() == [1] * 16
    assert owns.argmax(axis=0).tolist() == [0] * 6 + [1] * 4 + [2] * 6
    shorter = is_max_context(np.array([0, 4, 8]), np.array([8, 8, 4]))
    assert shorter.argmax(axis=0).tolist() == [0] * 6 + [1] * 6  # at equal context the longer window
    assert is_max_context(np.array([0, 3]), np.array([8, 8])).argmax(axis=0).tolist() == [0] * 6 + [1] * 5


def brute_force(scores, begin, longest):
    """Every legal span of every window, one by one."""
    owner = is_max_context(begin, np.array([len(window) for window in scores])).argmax(axis=0)
    found = []
    for number, (window, at) in enumerate(zip(scores, begin.tolist(), strict=True)):
        for i, j in itertools.product(range(len(window)), repeat=2):
            if i <= j < i + longest and owner[at + i] == number:
                found.append((-(window[i, 0] + window[j, 1]), at + i, at + j))
    return sorted(found)


@pytest.mark.parametrize("longest", [1, 3, 50])
def test_the_best_spans_are_those_of_a_search_by_hand(longest):
    draw = np.random.default_rng(longest)
    begin = np.array([0, 5, 10])
    scores = [draw.normal(size=(length, 2)) for length in (9, 9, 7)]
    ours = best_spans(scores, begin, longest)
    theirs = brute_force(scores, begin, longest)
    assert [(span.first, span.last) for span in ours][:20] == [span[1:] for span in theirs[:20]]
    assert [span.score for span in ours][:20] == pytest.approx([-span[0] for span in theirs[:20]])
    assert all(span.first <= span.last < span.first + longest for span in ours)


def test_a_passage_without_tokens_has_no_spans():
    assert best_spans([np.zeros((0, 2))], np.array([0]), 30) == []

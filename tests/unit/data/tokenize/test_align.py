"""Projection against a loop that looks at one character and one token at a time."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.core.records import CharSpans, Spans, UnitKind
from unmask.data.tokenize.align import align_units

LENGTH = 24


def naive(starts, ends, marks):
    """Words, sentences, phrases and entities as lists of (first token, after last token, label)."""
    count = len(starts)
    visible = [t for t in range(count) if ends[t] > starts[t]]
    characters = {t: set(range(starts[t], ends[t])) for t in visible}

    def touched(layer):
        groups = []
        for number, (a, b) in enumerate(pairs(marks, layer)):
            tokens = {t for t in visible if characters[t] & set(range(a, b))}
            if not tokens:
                continue
            if groups and groups[-1][0] & tokens:
                groups[-1][0].update(tokens)
            else:
                groups.append([tokens, label(marks, layer, number)])
        return groups

    sentence_of = {}
    for t in visible:
        before = [i for i, (a, _) in enumerate(pairs(marks, UnitKind.SENTENCE)) if a <= starts[t]]
        sentence_of[t] = before[-1] if before else -1
    words = []
    marked = touched(UnitKind.WORD)
    for t in visible:
        own = next(((number, text) for number, (tokens, text) in enumerate(marked) if t in tokens), (("alone", t), ""))
        place = (own[0], sentence_of[t])
        if words and words[-1][2] == place:
            words[-1][0].add(t)
        else:
            words.append([{t}, own[1], place])
    wide = {}
    for layer in (UnitKind.PHRASE, UnitKind.ENTITY):
        wide[layer] = []
        for tokens, text in touched(layer):
            full = set().union(*(word for word, _, _ in words if word & tokens))
            if wide[layer] and wide[layer][-1][0] & full:
                wide[layer][-1][0].update(full)
            else:
                wide[layer].append([full, text])
    sentences = []
    for t in visible:
        if sentences and sentences[-1][2] == sentence_of[t]:
            sentences[-1][0].add(t)
        else:
            sentences.append([{t}, label(marks, UnitKind.SENTENCE, sentence_of[t]), sentence_of[t]])

    def filled(groups):
        return [(first_with_invisible(min(g[0])), after_with_invisible(max(g[0])), g[1]) for g in groups]

    def first_with_invisible(t):
        while t > 0 and t - 1 not in characters:
            t -= 1
        return t

    def after_with_invisible(t):
        return count if t == visible[-1] else t + 1

    return {
        UnitKind.WORD: filled(words),
        UnitKind.SENTENCE: filled(sentences),
        **{k: filled(v) for k, v in wide.items()},
    }


def pairs(marks, layer):
    spans = marks[layer].spans if layer in marks else Spans.of()
    return list(zip(spans.start.tolist(), spans.end.tolist(), strict=True))


def label(marks, layer, number):
    return marks[layer].labels[number] if number >= 0 and layer in marks and marks[layer].labels else ""


@st.composite
def token_offsets(draw):
    spans = draw(st.lists(st.tuples(st.integers(0, LENGTH), st.integers(0, 4)), max_size=14))
    starts = sorted(a for a, _ in spans)
    ends = sorted(min(LENGTH, a + n) for a, n in spans)
    return np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


@st.composite
def layer_marks(draw):
    edges = sorted(draw(st.sets(st.integers(0, LENGTH), max_size=12)))
    spans = [(a, b) for a, b in itertools.pairwise(edges) if draw(st.booleans())]
    labels = tuple(f"label {a}" for a, _ in spans) if draw(st.booleans()) else ()
    return CharSpans(Spans.of(*spans), labels)


LAYERS = (UnitKind.WORD, UnitKind.PHRASE, UnitKind.ENTITY, UnitKind.SENTENCE)


@given(token_offsets(), st.dictionaries(st.sampled_from(LAYERS), layer_marks()))
@settings(max_examples=600, deadline=None)
def test_equals_the_naive_loop(offsets, marks):
    starts, ends = offsets
    units, labels = align_units(starts, ends, marks)
    assert len(units) == len(starts)
    if not (ends > starts).any():
        return
    expected = naive(starts.tolist(), ends.tolist(), marks)
    for layer, groups in expected.items():
        spans = units.spans(layer)
        assert list(zip(spans.start.tolist(), spans.end.tolist(), strict=True)) == [(a, b) for a, b, _ in groups], layer
        if layer in marks and marks[layer].labels:
            assert labels[layer] == tuple(text for _, _, text in groups)


def spans_of(units, layer):
    spans = units.spans(layer)
    return list(zip(spans.start.tolist(), spans.end.tolist(), strict=True))


def test_marks_that_share_a_token_become_one_word():
    units, _ = align_units(
        np.array([0, 2]), np.array([2, 4]), {UnitKind.WORD: CharSpans(Spans.of((0, 1), (1, 2), (2, 4)))}
    )
    assert spans_of(units, UnitKind.WORD) == [(0, 1), (1, 2)]


def test_an_entity_is_widened_to_whole_words_and_keeps_its_label():
    marks = {
        UnitKind.WORD: CharSpans(Spans.of((0, 2), (2, 4))),
        UnitKind.ENTITY: CharSpans(Spans.of((1, 2), (8, 9)), ("Q1", "gone")),
    }
    units, labels = align_units(np.arange(4), np.arange(1, 5), marks)
    assert spans_of(units, UnitKind.ENTITY) == [(0, 2)]
    assert labels[UnitKind.ENTITY] == ("Q1",)


def test_an_invisible_token_joins_the_word_after_it():
    marks = {UnitKind.WORD: CharSpans(Spans.of((0, 1), (2, 4)))}
    units, _ = align_units(np.array([0, 2, 2, 3]), np.array([1, 2, 3, 4]), marks)
    assert spans_of(units, UnitKind.WORD) == [(0, 1), (1, 4)]


def test_a_text_of_invisible_tokens_is_still_a_sentence():
    units, _ = align_units(np.array([0, 1]), np.array([0, 1]), {UnitKind.SENTENCE: CharSpans(Spans.of((0, 1)))})
    assert spans_of(units, UnitKind.SENTENCE) == [(0, 2)]
    assert spans_of(units, UnitKind.WORD) == [(0, 1), (1, 2)]


def test_no_tokens_give_no_units():
    units, labels = align_units(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), {})
    assert len(units) == 0
    assert not labels

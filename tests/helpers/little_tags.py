"""Small tagged sentences whose tags can be read off the words: what is liked or hated is a thing."""

from __future__ import annotations

THINGS = (("天", "气"), ("房", "间"), ("a", "lot"))


def sentences(count: int, first: int = 0) -> list[dict[str, object]]:
    """One entity each, between words that differ from sentence to sentence."""
    return [_sentence(number) for number in range(first, first + count)]


def _sentence(number: int) -> dict[str, object]:
    before, after = (("今", "天"), ("we", "liked"), ("很",))[number % 3], tuple(str(number))
    thing = THINGS[number // 3 % 3]
    kind = "LOT" if thing[0] == "a" else "THING"
    tags = ["O"] * len(before) + [f"B-{kind}", f"I-{kind}"] + ["O"] * len(after)
    return {"tokens": [*before, *thing, *after], "tags": tags}


def long_sentence(words: int) -> dict[str, object]:
    """Far longer than a row."""
    return {"tokens": ["很", "天", "气"] * words, "tags": ["O", "B-THING", "I-THING"] * words}

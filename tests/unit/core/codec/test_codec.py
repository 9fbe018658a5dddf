"""A small family of parts, defined here, is saved, read back, compared, changed and shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.config.attention_pattern import XLNET_STREAMS, AttentionPattern, Causal, WithinDocument, single_stream
from unmask.core.codec import (
    Difference,
    Json,
    decode,
    difference,
    dumps,
    encode,
    fill_defaults,
    fingerprint,
    override,
    override_many,
    tag_of,
    to_tree,
)
from unmask.core.codec.part_names import _locations, class_of_name, class_of_tag
from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.members import member

HERE = (sys.modules[__name__],)
X = TypeVar("X")


class Speed(IntEnum):
    SLOW = 0
    FAST = 1


class Chooser(Protocol):
    rate: float

    def choose(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Whole:
    layer: UnitKind = UnitKind.WORD
    run: tuple[float, ...] = (1.0,)
    rate: float = 0.15

    def choose(self) -> str:
        return "units"


@dataclass(frozen=True)
class Stretch:
    rate: float
    longest: int = 10

    def choose(self) -> str:
        return "spans"


@dataclass(frozen=True)
class Shares:
    mask: float = 0.8
    keep: float = 0.2

    def __post_init__(self) -> None:
        if abs(self.mask + self.keep - 1) > 1e-9:
            raise ValueError(f"shares must sum to one, found {self.mask} and {self.keep}")


@dataclass(frozen=True)
class Hide:
    select: Chooser
    replace: Shares = Shares()


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, kw_only=True)
class Stage(Generic[X]):
    length: int
    corrupt: Hide | Nothing
    ramp: Nothing | float = 0.5
    speed: Speed = Speed.SLOW
    shape: tuple[int, str] = (1, "x")
    weights: Mapping[UnitKind, float] = field(default_factory=lambda: MappingProxyType({}))
    counts: Mapping[int, tuple[Nothing, ...]] = field(default_factory=lambda: MappingProxyType({}))
    twice: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.length)


@dataclass(frozen=True)
class Plan:
    name: str
    stages: tuple[Stage[int], ...] = ()
    on: bool = True


BERT = Plan("bert", (Stage(length=128, corrupt=Hide(Whole())), Stage(length=512, corrupt=Hide(Whole()))))

numbers = st.floats(allow_nan=False, allow_infinity=False)
wholes = st.builds(Whole, st.sampled_from(UnitKind), st.lists(numbers, max_size=3).map(tuple), numbers)
choosers = wholes | st.builds(Stretch, numbers, st.integers())
stages = st.builds(
    Stage,
    length=st.integers(),
    corrupt=st.builds(Hide, choosers) | st.builds(Nothing),
    ramp=st.builds(Nothing) | numbers,
    speed=st.sampled_from(Speed),
    shape=st.tuples(st.integers(), st.text()),
    weights=st.dictionaries(st.sampled_from(UnitKind), numbers).map(MappingProxyType),
    counts=st.dictionaries(st.integers(), st.just((Nothing(),))).map(MappingProxyType),
)
plans = st.builds(Plan, st.text(), st.lists(stages, max_size=3).map(tuple), st.booleans())


@given(plans)
def test_a_value_survives_json_exactly(plan: Plan) -> None:
    back = decode(json.loads(dumps(plan)), Plan, HERE)
    assert back == plan
    assert (dumps(back), fingerprint(back)) == (dumps(plan), fingerprint(plan))
    assert difference(back, plan) == []


@given(plans, plans)
def test_fingerprints_and_differences_tell_values_apart(left: Plan, right: Plan) -> None:
    assert (fingerprint(left) == fingerprint(right)) == (dumps(left) == dumps(right))
    assert (difference(left, right) == []) == (left == right)
    mirrored = [Difference(path, b, a) for path, a, b in difference(right, left)]
    assert sorted(difference(left, right)) == sorted(mirrored)


def test_types_come_back_and_not_only_values() -> None:
    stage = Stage(length=1, corrupt=Hide(Whole(run=(0.1, 1e-320))), shape=(2, ""), weights={UnitKind.WORD: 1.0})
    back = decode(encode(stage), Stage, HERE)
    assert back.corrupt == Hide(Whole(run=(0.1, 1e-320)))
    assert (type(back.shape), type(next(iter(back.weights))), back.twice) == (tuple, UnitKind, 2)
    with pytest.raises(TypeError):
        back.weights[UnitKind.WORD] = 2.0  # type: ignore[index]


def test_what_json_looks_like() -> None:
    assert encode(Hide(Whole(UnitKind.PHRASE), Shares(1, 0))) == {
        "type": f"{__name__}:Hide",
        "select": {"type": f"{__name__}:Whole", "layer": "PHRASE", "run": [1.0], "rate": 0.15},
        "replace": {"type": f"{__name__}:Shares", "mask": 1.0, "keep": 0.0},
    }


def test_equal_values_have_one_text_and_one_fingerprint() -> None:
    ways = [{UnitKind.WORD: 1, UnitKind.TOKEN: 2.0}, {UnitKind.TOKEN: 2, UnitKind.WORD: 1.0}]
    one, other = (Stage(length=1, corrupt=Nothing(), weights=way) for way in ways)
    assert one == other
    assert (dumps(one), fingerprint(one)) == (dumps(other), fingerprint(other))


def test_a_fingerprint_never_changes() -> None:
    assert fingerprint(single_stream(Causal() & WithinDocument())) == "7019fe59320ebaa6ebdf5df4d65dfce3"
    assert fingerprint((Causal(), 3, "shards")) == "fe549ae1792776d7757234aca5380641"


def test_parts_of_unmask_are_saved_under_names_that_survive_a_move() -> None:
    assert encode(Causal()) == {"type": "causal"}
    assert tag_of(WithinDocument) == "within-document"
    classes = [class_of_name(name) for name in _locations()[1]]
    assert all(cls is class_of_tag(tag_of(cls), "", {}) for cls in classes if cls)


def test_a_field_that_was_added_with_a_default_is_filled_in() -> None:
    stage = member("bert").stages[0]
    saved = encode(stage)
    assert isinstance(saved, dict)
    older = {name: value for name, value in saved.items() if name not in ("fraction", "task_weights")}
    assert decode(older, type(stage)) == replace(stage, fraction=1.0)
    assert fill_defaults({"stage": older}) == {"stage": encode(replace(stage, fraction=1.0))}
    assert fill_defaults([tagged("Gone")]) == [tagged("Gone")]


def test_the_parts_of_unmask_are_found_without_being_given() -> None:
    assert decode(encode(XLNET_STREAMS), AttentionPattern) == XLNET_STREAMS


def holder(name: str, kind: object, held: str = "value", frozen: bool = True) -> type:
    return make_dataclass(name, [(held, kind)], frozen=frozen)


Bad, Calls = holder("Bad", object), holder("Calls", Callable[[int], int])
Whatever, Numbers = holder("Whatever", int | str), holder("Numbers", tuple[float, ...])
Taken, Melting = holder("Taken", int, held="type"), holder("Melting", int, frozen=False)


@dataclass(frozen=True)
class Table:
    value: Mapping[str, int]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (Bad(lambda: 0), "Bad.value needs object, as plain data, found function"),
        (Calls(abs), "Calls.value needs .*, as plain data, found builtin"),
        (Bad(np.zeros(2)), "found ndarray"),
        (Numbers((np.float64(0.5),)), "Numbers.value.0 needs float, found float64"),
        (Numbers((True,)), "needs float, found bool"),
        (Numbers((float("nan"),)), "finite number, found float nan"),
        (Numbers((2**53 + 1,)), "needs float, found int"),
        (Stretch(0.1, "3"), "Stretch.longest needs int, found str '3'"),
        (Whole("word"), "Whole.layer needs UnitKind, as plain data, found str"),
        (Whole("WORD"), "Whole.layer needs UnitKind, as plain data, found str"),
        (Hide(Shares()), "Hide.select needs a Chooser, found a Shares"),
        (Hide(Whole), "Hide.select: type must be a frozen dataclass"),
        (Whatever(3), "at most one other type"),
        (Taken(3), "rename it"),
        (Melting(3), "frozen dataclass"),
        (Table({"type": 3}), "'type', the key of tags"),
        (Table({3: 3}), "str as keys, found dict \\{3: 3\\}"),
        (lambda: 0, "as plain data, found function"),
    ],
)
def test_what_is_no_data_is_refused_when_it_is_saved(value: object, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        encode(value)


def test_a_part_defined_inside_a_function_is_refused() -> None:
    @dataclass(frozen=True)
    class Local:
        pass

    with pytest.raises(RecipeError, match="top of a module"):
        encode(Local())


def tagged(name: str, **fields: Json) -> Json:
    return {"type": f"{__name__}:{name}", **fields}


@pytest.mark.parametrize(
    ("data", "kind", "sentence"),
    [
        (tagged("Stretch", rate=0.1, longest="5"), Stretch, "Stretch.longest needs int, found str '5'"),
        (tagged("Stretch", rate=0.1, longest=True), Stretch, "needs int, found bool"),
        (tagged("Stretch", rate=float("inf"), longest=5), Stretch, "finite"),
        (tagged("Stretch", longest=5), Stretch, "no rate"),
        (
            tagged("Stretch", rate=0.1, longest=5, extra=1),
            Stretch,
            "Stretch has the fields rate, longest; found an unknown extra",
        ),
        (tagged("Shares", mask=0.5, keep=0.1), Shares, "Shares: shares must sum to one"),
        (tagged("Whole", layer="word", run=[], rate=0.1), Whole, "one of TOKEN, WORD"),
        (tagged("Whole", layer="WORD", run="12", rate=0.1), Whole, "Whole.run needs tuple.*found str '12'"),
        (tagged("Hide", select=tagged("Nothing"), replace=tagged("Nothing")), Hide, "needs a Chooser"),
        (tagged("Nothing"), Plan, "needs a Plan, found a Nothing"),
        ({"rate": 0.1}, Stretch, "whose 'type' names a Stretch"),
        ({"type": "nowhere:Stretch"}, Stretch, "is not of unmask"),
        ({"type": "unmaskable:Stretch"}, Stretch, "is not of unmask"),
        ({"type": "unmask.config.attention_pattern:Causal"}, Stretch, "is not of unmask"),
        ({"type": "no-such-part"}, Stretch, "no part 'no-such-part' in this version"),
        ({"type": "user-error"}, Stretch, "no part 'user-error' in this version"),
        ({"type": f"{__name__}:json"}, Stretch, "no part"),
        ({"type": f"{__name__}:RecipeError"}, Stretch, "no part"),
        ({"type": "causal"}, Stretch, "needs a Stretch, found a Causal"),
        ({"type": f"{__name__}:Speed"}, Stretch, "frozen dataclass"),
        (tagged("Table", value={"a": 1, "b": "2"}), Table, "Table.value.b needs int"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_its_place(data: Json, kind: type, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        decode(data, kind, HERE)


def test_decoding_imports_nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with pytest.raises(RecipeError, match="is not of unmask"):
        decode({"type": "this:Zen"}, Stretch)
    assert "this" not in sys.modules


def test_a_mapping_key_has_one_spelling() -> None:
    data = encode(Stage(length=1, corrupt=Nothing(), counts={3: ()}))
    with pytest.raises(RecipeError, match="key that is written as '3'"):
        decode({**data, "counts": {"03": []}}, Stage, HERE)


def test_a_difference_names_the_leaf() -> None:
    first = replace(BERT.stages[0], corrupt=Hide(Whole(rate=0.2, run=(0.5, 0.5))), weights={UnitKind.WORD: 0.5})
    other = replace(BERT, name="roberta", stages=(first, BERT.stages[1]))
    assert difference(BERT, other) == [
        Difference("name", "'bert'", "'roberta'"),
        Difference("stages.0.corrupt.select.run", "(1.0)", "(0.5, 0.5)"),
        Difference("stages.0.corrupt.select.rate", "0.15", "0.2"),
        Difference("stages.0.weights.WORD", "nothing", "0.5"),
    ]


def test_a_changed_part_is_one_difference_and_a_missing_one_is_nothing() -> None:
    spans = replace(BERT.stages[0], corrupt=Hide(Stretch(0.15, 10)))
    assert difference(BERT, replace(BERT, stages=(spans,))) == [
        ("stages.0.corrupt.select", "Whole(layer=word)", "Stretch(longest=10)"),
        ("stages.1", "Stage(length=512, ...)", "nothing"),
    ]
    assert difference(Nothing(), Whole()) == [("", "Nothing()", "Whole(layer=word)")]


@pytest.mark.parametrize(
    ("path", "text", "read"),
    [
        ("name", "5", lambda plan: plan.name == "5"),
        ("on", "False", lambda plan: plan.on is False),
        ("stages.1.length", "256", lambda plan: plan.stages[1].length == 256 and plan.stages[0].length == 128),
        ("stages.0.corrupt.select.rate", "1", lambda plan: plan.stages[0].corrupt.select.rate == 1.0),
        (
            "stages.0.corrupt.select.layer",
            "entity",
            lambda plan: plan.stages[0].corrupt.select.layer is UnitKind.ENTITY,
        ),
        ("stages.0.corrupt.select.run", "0.4, .6", lambda plan: plan.stages[0].corrupt.select.run == (0.4, 0.6)),
        ("stages.0.corrupt.select.run.0", "2", lambda plan: plan.stages[0].corrupt.select.run == (2.0,)),
        ("stages.0.shape", "(7,y)", lambda plan: plan.stages[0].shape == (7, "y")),
        ("stages.0.ramp", "0.25", lambda plan: plan.stages[0].ramp == 0.25),
        ("stages.0.speed", "FAST", lambda plan: plan.stages[0].speed is Speed.FAST),
        (
            "stages.0.weights.WORD",
            "3",
            lambda plan: plan.stages[0].weights == {UnitKind.WORD: 3.0, UnitKind.TOKEN: 0.5},
        ),
    ],
)
def test_an_override_changes_one_leaf_by_its_type(path: str, text: str, read: Callable[[Plan], bool]) -> None:
    weights = MappingProxyType({UnitKind.WORD: 0.5, UnitKind.TOKEN: 0.5})
    plan = replace(BERT, stages=(replace(BERT.stages[0], weights=weights), BERT.stages[1]))
    changed = override(plan, path, text)
    assert read(changed)
    assert [path.startswith(place) for place, *_ in difference(plan, changed)] == [True]
    assert decode(encode(changed), Plan, HERE) == changed


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        ("length", "5", "Plan has no 'length'; it has name, stages, on"),
        ("stages.2.length", "5", "Plan.stages has no '2'; it has 0, 1"),
        ("stages.0.corrupt.rate", "5", "Plan.stages.0.corrupt has no 'rate'; it has select, replace"),
        ("stages.0.length.x", "5", "it is 128, which has no fields"),
        ("stages.0.length", "long", "Plan.stages.0.length needs a whole number, found 'long'"),
        ("stages.0.length", "2.5", "needs a whole number, found '2.5'"),
        ("stages.0.ramp", "fast", "needs a number, found 'fast'"),
        ("stages.0.ramp", "nan", "finite"),
        ("on", "1", "needs true or false, found '1'"),
        ("stages.0.shape", "1,x,2", "needs 2 values, found 3"),
        (
            "stages.0.corrupt.select.layer",
            "letter",
            "needs one of token, word, phrase, entity, sentence, turn, found 'letter'",
        ),
        ("stages.0.corrupt", "x", "one of its fields: select, replace"),
        ("stages.0.corrupt.replace.mask", "0.9", "Plan.stages.0.corrupt.replace: shares must sum to one"),
        ("", "x", "Plan has no ''"),
    ],
)
def test_an_override_that_cannot_work_says_what_exists_there(path: str, text: str, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        override(BERT, path, text)


def test_changes_that_make_sense_only_together_come_in_any_order() -> None:
    """A width that old heads do not divide, shares that no longer sum to one: only the end must work."""
    changes = [
        ("network.width", "32"),
        ("network.heads", "2"),
        ("stages.0.fraction", "0.5"),
        ("stages.1.fraction", "0.25"),
        ("stages.1.fraction", "0.5"),
    ]
    for ordered in (changes, [changes[1], changes[0], *changes[2:]]):
        recipe = override_many(member("bert"), ordered)
        assert (recipe.network.width, recipe.network.heads) == (32, 2)
        assert [stage.fraction for stage in recipe.stages] == [0.5, 0.5]
    with pytest.raises(RecipeError, match="heads divide"):
        override_many(member("bert"), changes[:1])
    assert override_many(member("bert"), []) == member("bert")


def test_a_person_reads_four_digits_and_json_has_all_of_them() -> None:
    third = Stretch(1 / 3, 123456)
    assert to_tree(third) == ["Stretch", "  rate: 0.3333", "  longest: 123456"]
    assert difference(third, replace(third, rate=0.5)) == [("rate", "0.3333", "0.5")]
    assert decode(json.loads(dumps(third)), Stretch, HERE) == third
    assert to_tree((123456.0, 1e-20 / 3)) == ["(123456.0, 3.333e-21)"]


def test_numbers_that_differ_late_are_told_apart() -> None:
    assert difference(Stretch(0.15), Stretch(0.150001)) == [("rate", "0.15", "0.150001")]


def test_a_description_is_a_tree() -> None:
    assert to_tree((Hide(Whole(run=(0.5, 0.5))), Table({"a": 1}), Nothing())) == [
        "",
        "  0: Hide",
        "    select: Whole",
        "      layer: word",
        "      run: (0.5, 0.5)",
        "      rate: 0.15",
        "    replace: Shares",
        "      mask: 0.8",
        "      keep: 0.2",
        "  1: Table",
        "    value:",
        "      a: 1",
        "  2: Nothing()",
    ]

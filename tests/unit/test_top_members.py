"""Members are found by walking; a user's file is a member too; a difference between members is what a paper changed."""

from __future__ import annotations

import pkgutil
from pathlib import Path

import pytest

import unmask.recipes
from unmask.core.codec import difference, override, to_tree
from unmask.core.errors import RecipeError
from unmask.data.corrupt.masking import MaskTokens, WholeUnits
from unmask.members import member, members, sizes

MINE = """
from dataclasses import replace

from unmask.recipes.bert import bert


def mine():
    return replace(bert(), name="mine", parent="bert")


ready = replace(bert(), name="ready", parent="bert")
number = 3


def wrong():
    return "a recipe"
"""

OWN_PART = '''
from __future__ import annotations

from dataclasses import dataclass, replace

from unmask.data.corrupt.masking import MaskTokens
from unmask.data.corrupt.masking import RandomTokens
from unmask.core.rng import Key
from unmask.recipes.bert import bert
from unmask.core.records import RowBatch, Spans, UnitKind


@dataclass(frozen=True, slots=True)
class Half:
    """Chooses as RandomTokens does, at half of the rate."""

    rate: float = 0.15

    @property
    def required_units(self) -> frozenset[UnitKind]:
        return frozenset()

    def __call__(self, example: RowBatch, key: Key) -> Spans:
        return RandomTokens(self.rate / 2)(example, key)


def halved():
    stage = bert().stages[0]
    task = replace(stage.tasks[0], corruption=MaskTokens(Half()))
    return replace(bert(), name="halved", stages=(replace(stage, tasks=(task,), fraction=1.0),))
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "my.py"
    path.write_text(MINE, encoding="utf-8")
    return path


def test_every_file_of_the_recipes_is_a_member_of_its_own_name() -> None:
    files = {module.name.replace("_", "-") for module in pkgutil.iter_modules(unmask.recipes.__path__)}
    assert {recipe.name for recipe in members()} == files
    assert all(member(name).name == name for name in files)
    assert len(files) >= 6


def test_the_root_comes_first_and_every_parent_exists_and_is_no_younger() -> None:
    found = {recipe.name: recipe for recipe in members()}
    roots = [name for name, recipe in found.items() if not recipe.parent]
    assert list(found)[: len(roots)] == roots
    assert roots
    for recipe in found.values():
        if recipe.parent:
            assert found[recipe.parent].year <= recipe.year


def test_every_member_names_its_paper_and_what_it_changed() -> None:
    for recipe in members():
        assert recipe.paper
        assert recipe.title
        assert 0 < len(recipe.summary) <= 80


def test_no_two_members_are_the_same_science() -> None:
    science = [(recipe.tokenizer, recipe.stages, recipe.masking) for recipe in members()]
    assert len(set(science)) == len(science)


def test_a_file_added_to_the_recipes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = MINE.replace("def mine", "def newcomer").replace('name="mine"', 'name="newcomer"')
    (tmp_path / "newcomer.py").write_text(text, encoding="utf-8")
    before = {recipe.name for recipe in members()}
    monkeypatch.setattr(unmask.recipes, "__path__", [*unmask.recipes.__path__, str(tmp_path)])
    assert {recipe.name for recipe in members()} == before | {"newcomer"}


def test_a_users_own_recipe_is_taken_from_a_file(mine: Path) -> None:
    assert member(f"{mine}:mine").name == "mine"
    assert member(f"{mine}:ready").name == "ready"
    assert member(f"{mine}:mine").stages == member("bert").stages


def test_a_users_own_recipe_may_define_a_part_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "with_part.py"
    path.write_text(OWN_PART, encoding="utf-8")
    recipe = member(f"{path}:halved")
    changed = override(recipe, "stages.0.tasks.0.corruption.select.rate", "0.5")
    assert "rate: 0.5" in "\n".join(to_tree(changed))


BROKEN = """
from dataclasses import replace

from unmask.data.corrupt.masking import RandomTokens
from unmask.recipes.bert import bert


def crash():
    return 1 / 0


def sized(size):
    return bert()


def unknown():
    return replace(bert(), colour=1)


def shares():
    return replace(bert(), stages=())


def leaves():
    raise SystemExit
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("crash", "broken.py:9, in crash: ZeroDivisionError: division by zero."),
        ("sized", "broken.py:sized: TypeError: sized() missing 1 required positional argument: 'size'."),
        ("unknown", "broken.py:17, in unknown: TypeError: Recipe.__init__() got an unexpected keyword argument"),
        ("shares", "broken.py:21, in shares: bert: the stages' shares of the steps must sum to 1, found no stages."),
        ("leaves", "broken.py:25, in leaves: SystemExit."),
        ("nope", "broken.py has no 'nope'; it has crash, sized, unknown, shares, leaves."),
    ],
)
def test_what_goes_wrong_in_a_users_recipe_is_one_sentence_with_its_line(
    name: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        member(f"{path}:{name}")
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("\ndef mine(:\n", "broken.py:2: SyntaxError: invalid syntax."),
        ("import nothing_of_this_name", "broken.py:1: ModuleNotFoundError: No module named 'nothing_of_this_name'."),
        ("def f():\n  return {}['x']\nf()", "broken.py:2, in f: KeyError: 'x'."),
    ],
)
def test_a_users_file_that_cannot_be_run_is_refused_with_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text, encoding="utf-8")
    for _ in range(2):
        with pytest.raises(RecipeError) as caught:
            member(f"{path}:mine")
        assert str(caught.value) == f"{tmp_path}/{sentence}"


def test_a_changed_file_is_read_anew_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "changing.py"
    path.write_text(OWN_PART, encoding="utf-8")
    assert difference(member(f"{path}:halved"), member(f"{path}:halved")) == []
    path.write_text(OWN_PART.replace('name="halved"', 'name="edited"'), encoding="utf-8")
    assert member(f"{path}:halved").name == "edited"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nobody", "There is no member 'nobody'. There are: albert, bert,"),
        ("{folder}/absent.py:mine", "absent.py: there is no such file to take a recipe from."),
        ("{folder}/absent.py", "absent.py: there is no such file to take a recipe from."),
        ("{folder}/my.py:nothing", "my.py has no 'nothing'; it has mine, ready, wrong."),
        ("{folder}/my.py:", "my.py is a file that may hold several recipes: add :name. It has mine, ready, wrong."),
        ("{folder}/my.py", "my.py is a file that may hold several recipes: add :name. It has mine, ready, wrong."),
        ("{folder}/my.py:number", "my.py:number should be a function that returns a Recipe, found int."),
        ("{folder}/my.py:wrong", "my.py:wrong should be a function that returns a Recipe, found str."),
    ],
)
def test_what_is_no_member_is_refused_with_a_sentence(name: str, sentence: str, mine: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        member(name.format(folder=mine.parent))
    assert sentence in str(caught.value)


def test_what_roberta_changed_is_what_the_difference_says() -> None:
    found = {path: (left, right) for path, left, right in difference(member("bert"), member("roberta"))}
    changed = {path: tuple(side.partition("(")[0] for side in sides) for path, sides in found.items()}
    assert changed["masking"] == ("StaticMasking", "DynamicMasking")
    assert changed["tokenizer"] == ("WordPiece", "ByteBPE")
    assert changed["stages.0.tasks.0.examples"] == ("SegmentPairs", "Packed")
    assert changed["stages.0.tasks.0.objectives.1"] == ("RowFactObjective", "nothing")
    assert found["stages.0.max_length"] == ("128", "512")
    assert found["stages.0.batch_size"] == ("256", "8192")
    assert found["stages.1"][1] == "nothing"
    assert not any("corruption" in path for path in found), "RoBERTa masks as BERT does"


def test_what_whole_word_masking_changed_is_the_selection() -> None:
    paths = {path for path, _, _ in difference(member("bert"), member("wwm")) if "tasks" in path}
    assert paths == {"stages.0.tasks.0.corruption.select", "stages.1.tasks.0.corruption.select"}
    corrupt = member("wwm").tasks[0].corruption
    assert isinstance(corrupt, MaskTokens)
    assert isinstance(corrupt.select, WholeUnits)


def test_a_member_does_not_differ_from_itself() -> None:
    for recipe in members():
        assert difference(recipe, member(recipe.name)) == []


SIZED = """
from unmask.config.sizes import Size
from unmask.recipes.bert import bert

SIZES = {"atom": Size(depth=1, width=8, heads=1, ffn_width=16)}


def mine(size=SIZES["atom"]):
    return bert(size)


def fixed():
    return bert()
"""


def test_a_member_comes_in_sizes() -> None:
    assert member("bert", "tiny").network.width == 128
    assert member("bert", "tiny").stages == member("bert").stages
    assert list(sizes("albert")) == [*sizes("bert"), "xlarge", "xxlarge"]
    assert member("roberta", "large").optim != member("roberta").optim, "the paper gave each size a rate of its own"


@pytest.mark.parametrize(
    ("name", "size", "sentence"),
    [
        ("bert", "huge", "bert has no size 'huge'. It has: tiny, mini, small, medium, base, large."),
        (
            "albert",
            "huge",
            "albert has no size 'huge'. It has: tiny, mini, small, medium, base, large, xlarge, xxlarge.",
        ),
        ("{folder}/sized.py:mine", "tiny", "mine has no size 'tiny'. It has: atom."),
        ("{folder}/sized.py:fixed", "atom", "fixed comes in one size only: its function takes no size."),
        ("{folder}/my.py:ready", "tiny", "ready comes in one size only"),
    ],
)
def test_a_size_that_is_not_there_is_refused_with_a_sentence(name: str, size: str, sentence: str, mine: Path) -> None:
    (mine.parent / "sized.py").write_text(SIZED, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        member(name.format(folder=mine.parent), size)
    assert sentence in str(caught.value)


def test_a_users_file_may_name_sizes_of_its_own(mine: Path) -> None:
    (mine.parent / "sized.py").write_text(SIZED, encoding="utf-8")
    assert member(f"{mine.parent}/sized.py:mine", "atom").network.width == 8

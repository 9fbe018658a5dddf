"""Parts that are typed for --set: read like any value, found beside the part that stands there, never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from unmask.config.optim import LAMB
from unmask.core.codec import difference, override, override_many
from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.data.corrupt.masking import MaskTokens, WholeUnits
from unmask.data.input_formats.pairs import SegmentPairs
from unmask.data.input_formats.row_plan import DynamicMasking, StaticMasking
from unmask.members import member
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import NSP

BERT = member("bert")
TASK = "stages.0.tasks.0"


@pytest.mark.parametrize(
    ("path", "typed", "found"),
    [
        ("masking", "StaticMasking(1)", lambda recipe: recipe.masking == StaticMasking(1)),
        ("masking", "StaticMasking(num_copies = 3)", lambda recipe: recipe.masking == StaticMasking(3)),
        ("masking", " DynamicMasking ", lambda recipe: recipe.masking == DynamicMasking()),
        ("optim.optimizer", "LAMB(1e-3, betas=(0.8, 0.9))",
         lambda recipe: recipe.optim.optimizer == LAMB(1e-3, (0.8, 0.9))),
        (f"{TASK}.examples", "SegmentPairs(short_fraction=0.5)",
         lambda recipe: recipe.tasks[0].examples == SegmentPairs(short_fraction=0.5)),
        (f"{TASK}.objectives", "MLM", lambda recipe: recipe.tasks[0].objectives == (MLM(),)),
        (f"{TASK}.objectives", "MLM(weight=2), RowFactObjective(next, 0.5)",
         lambda recipe: [one.weight for one in recipe.tasks[0].objectives] == [2, 0.5]),
        (f"{TASK}.corruption", "MaskTokens(select=WholeUnits(layer=word, run_lengths=(0.5, 0.5)))",
         lambda recipe: recipe.tasks[0].corruption == MaskTokens(WholeUnits(UnitKind.WORD, (0.5, 0.5)))),
    ],
)  # fmt: skip
def test_a_part_is_typed_as_it_is_written_in_a_recipe(path, typed, found):
    assert found(override(BERT, path, typed))


def test_a_star_is_every_place():
    changed = override_many(
        BERT, [("stages.*.batch_size", "8"), (f"stages.*.{TASK[9:]}.objectives.1", "RowFactObjective(next, 2)")]
    )
    assert [stage.batch_size for stage in changed.stages] == [8, 8]
    assert [stage.tasks[0].objectives[1].weight for stage in changed.stages] == [2, 2]
    assert BERT.stages[0].tasks[0].objectives == (MLM(), NSP)
    later = override_many(BERT, [("stages.*.batch_size", "8"), ("stages.1.batch_size", "4")])
    assert [stage.batch_size for stage in later.stages] == [8, 4]


def test_a_star_in_place_of_a_name_is_no_path():
    with pytest.raises(RecipeError, match=r"Recipe.network has no '\*'; it has depth, width"):
        override(BERT, "network.*", "3")


@pytest.mark.parametrize(
    ("path", "typed", "sentence"),
    [
        ("masking", "Copes(1)", "Recipe.masking: there is no part 'Copes'"),
        ("masking", "2", "there is no part '2' that fits here. Write one as Name\\(field=value\\)"),
        ("masking", "StaticMasking(", "there is no part 'StaticMasking\\('"),
        (
            "masking",
            "StaticMasking(1, 2)",
            "StaticMasking was given 2 values, more than it has fields; it has num_copies",
        ),
        (
            "masking",
            "StaticMasking(number=1)",
            "StaticMasking has no field 'number', or was given it twice; it has num_copies",
        ),
        ("masking", "StaticMasking(1, num_copies=1)", "given it twice"),
        ("masking", "StaticMasking(**{})", "has no field None"),
        ("masking", "StaticMasking(one)", "Recipe.masking.num_copies needs a whole number, found 'one'"),
        ("masking", "StaticMasking(0)", "Static masking needs at least 1 copy, found 0"),
        ("masking", "MLM()", "needs a DynamicMasking or StaticMasking, found a MLM"),
        (
            "masking",
            "unmask.objectives.mlm.MLM()",
            "there is no part 'unmask.objectives.mlm.MLM'",
        ),
        ("masking", "'('()", "there is no part"),
        ("masking", "unmask.members.member('bert')", "there is no part 'unmask.members.member'"),
        ("masking", "os.getcwd()", "there is no part 'os.getcwd'"),
        ("masking", "unmask.nowhere.Part()", "there is no part 'unmask.nowhere.Part'"),
        ("optim.optimizer", "LAMB", "LAMB also needs lr; its fields are lr, betas"),
        (f"{TASK}.objectives", "MLM(), MLM()", "learns the same objective twice"),
        (f"{TASK}.objectives", "SOP", "there is no part 'SOP'"),
        (
            f"{TASK}.examples",
            "Packed(join=never)",
            "RowFactObjective needs the fact 'next', but Packed states no facts",
        ),
        (f"{TASK}.examples.negative", "SegmentPairs()", "needs one of random, swapped, both, found 'SegmentPairs"),
        ("network", "x", "or set one of its fields: depth, width, heads"),
    ],
)
def test_what_cannot_stand_there_is_refused_with_a_sentence(path, typed, sentence):
    with pytest.raises(RecipeError, match=sentence):
        override(BERT, path, typed)


OWN = """
from __future__ import annotations
from dataclasses import dataclass, replace
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.corrupt.masking import RandomTokens
from unmask.recipes.bert import bert

@dataclass(frozen=True, slots=True)
class Half:
    rate: float = 0.15

    @property
    def required_units(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, example: object, key: object) -> object:
        return RandomTokens(self.rate / 2)(example, key)

def halved():
    stage = bert().stages[0]
    task = replace(stage.tasks[0], corruption=MaskTokens(Half()))
    return replace(bert(), name="halved", stages=(replace(stage, tasks=(task,), fraction=1.0),))
"""


def test_a_part_of_ones_own_is_found_in_its_own_file(tmp_path: Path):
    path = tmp_path / "own_half.py"
    path.write_text(OWN, encoding="utf-8")
    halved = member(f"{path}:halved")
    for typed, rate in (("Half(0.5)", 0.5), ("RandomTokens(0.25)", 0.25)):
        changed = override(halved, f"{TASK}.corruption.select", typed)
        assert changed.tasks[0].corruption.select.rate == rate
        assert type(changed.tasks[0].corruption.select).__name__ == typed.partition("(")[0]


def test_a_part_exchanged_for_another_is_told_by_what_they_do_not_share():
    found = {row.path: row[1:] for row in difference(BERT, member("albert"))}
    assert found["tokenizer"] == ("WordPiece(size=21128)", "Unigram(size=30000)")
    assert found["optim.optimizer"] == ("AdamW(lr=0.0001)", "LAMB(lr=0.00176)")
    assert found[f"{TASK}.corruption.select"][0] == "RandomTokens()"
    spans = {row.path: row[1:] for row in difference(BERT, member("spanbert"))}
    assert spans[f"{TASK}.objectives.1"] == ("RowFactObjective(fact=next)", "SBO(max_span_tokens=15)")
    assert (
        spans[f"{TASK}.corruption.select"][1]
        == "WholeUnits(layer=word, run_lengths=(0.2241, 0.1792, ... 0.03007), inside=token)"
    )

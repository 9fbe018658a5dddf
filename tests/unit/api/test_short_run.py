"""What a short run changes in a member: the same for all that change nothing but rows between their stages."""

import pytest

from unmask.api.short_run import short_recipe
from unmask.members import members


@pytest.mark.parametrize("recipe", members(), ids=lambda recipe: recipe.name)
def test_rows_are_short_and_then_longer_and_nothing_else_is_learned(recipe):
    short = short_recipe(recipe)
    assert [stage.max_length for stage in short.stages] == [32] * (len(short.stages) - 1) + [128]
    assert {stage.max_length * stage.batch_size for stage in short.stages} == {2048}
    for stage in short.stages:  # as many streams as rows in a step; all else of a task stays
        assert any(stage.tasks == one.resized(stage.max_length, stage.batch_size).tasks for one in recipe.stages)
    if len({stage.tasks for stage in recipe.stages}) == 1:
        assert [stage.fraction for stage in short.stages] == [0.9, 0.1]

"""Whether a corpus was prepared with the kind of vocabulary that a member was published with.

What arrives: a recipe and a prepared folder. What leaves: a sentence, or nothing if the two agree.
What never happens here: a refusal. A rule works on any vocabulary; its numbers are just not the paper's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unmask.core.io.atomic import read_json
from unmask.tasks.recipe import Recipe


def vocabulary_mismatch(recipe: Recipe, folder: Path) -> str:
    """What to say of a corpus whose vocabulary is of another kind than the recipe's; empty if it is of that kind."""
    found = vocabulary_kind(read_json(folder / "tokenizer.json"))
    if found == vocabulary_kind(json.loads(recipe.tokenizer.untrained_pipeline().to_str())):
        return ""
    return (
        f"{folder} has a {found} vocabulary; {recipe.name}'s is {type(recipe.tokenizer).__name__} "
        f"(prepare --for {recipe.name})"
    )


def vocabulary_kind(content: dict[str, Any]) -> str:
    """The kind of a `tokenizer.json`: its model, and whether that spells text in bytes."""
    model = str(content["model"]["type"])
    steps = content["pre_tokenizer"] or {}
    spells_bytes = any(step["type"] == "ByteLevel" for step in steps.get("pretokenizers", [steps] if steps else []))
    return f"Byte{model}" if spells_bytes else model

"""The public surface: its names and signatures, and how much a command loads."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest

import unmask as um
import unmask.parts

SIGNATURES = {
    "prepare": "files out recipe vocab_size tokenizer dialogues options processes reporter",
    "pretrain": "recipe corpus out size steps tokens seed set on_event keywords",
    "finetune": "model train out dev task method options reporter listeners",
    "evaluate": "model suite out seeds tasks scratch options max_parallel reporter",
    "compare": "members corpus suite out size steps tokens seeds preset changes finetune_options listener",
    "load": "folder checkpoint",
    "recipe": "name size set",
    "list_recipes": "",
    "diff": "one other",
    "walk": "name text other task seed",
    "audit": "name corpus rows seed",
    "task_batches": "name corpus batch_size stage task seed",
}
VALUES = {"Corpus", "Run", "Model", "FineTunedModel", "Recipe", "ParityReport", "UserError"}
OPTIONS = {"FineTuneOptions", "PrepareOptions", "TaskOptions"}
METHODS = {
    "fill_mask": "self text top_k",
    "embed": "self texts pooling layer normalize batch_size",
    "generate": "self sources num_beams max_new_tokens",
    "export": "self folder form onnx normalize",
    "predict": "self rows",
    "score": "self file",
}
MOST_PARAMETERS = 12
MOST_MODULES = {"pretrain": 140, "fill-mask": 110, "family": 90}


def test_the_surface_has_these_names_and_no_others():
    assert set(um.__all__) == {*SIGNATURES, *VALUES, *OPTIONS, "finetuning", "parts", "config", "__version__"}
    assert dir(um) == sorted(um.__all__)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_verb_has_these_parameters(name):
    names = list(inspect.signature(getattr(um, name)).parameters)
    assert names == SIGNATURES[name].split()
    assert len(names) <= MOST_PARAMETERS


@pytest.mark.parametrize("name", METHODS)
def test_both_kinds_of_models_have_the_same_methods(name):
    for kind in (um.Model, um.FineTunedModel):
        assert list(inspect.signature(getattr(kind, name)).parameters) == METHODS[name].split()


def test_every_part_is_where_the_shelf_says():
    for name in unmask.parts.__all__:
        assert getattr(unmask.parts, name) is not None
    for package in (um.finetuning.methods, um.finetuning.tasks):
        assert all(getattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("module", [um, unmask.parts, um.finetuning, um.finetuning.methods])
def test_an_unknown_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018


def _modules(*words: object) -> list[str]:
    """The modules of the package that a command loads, without the empty files of packages."""
    script = """
import json, sys
from unmask.cli.main import app
try:
    app(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code
found = [name for name, one in sys.modules.items() if name.startswith("unmask.") and not hasattr(one, "__path__")]
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_command_loads_what_it_needs(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"今天是第{number}天。\n天气很好。\n\n" for number in range(80)), encoding="utf-8")
    corpus = um.prepare([text], out=tmp_path / "data", recipe="wwm", vocab_size=200)
    few = ("--set", "stages.*.max_length=16", "--set", "stages.*.batch_size=4", "--num-evals", 1)
    words = ("pretrain", "wwm", "--data", corpus.folder, "--out", tmp_path / "run", "--size", "tiny", "--steps", 2)
    for command, found in {
        "pretrain": _modules(*words, *few),
        "fill-mask": _modules("fill-mask", tmp_path / "run", "天[MASK]"),
        "family": _modules("family"),
    }.items():
        assert len(found) <= MOST_MODULES[command], command
        assert not [name for name in found if name.startswith(("unmask.finetuning", "unmask.evaluation"))]

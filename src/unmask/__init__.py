"""unmask: pre-train, fine-tune, compare and export the BERT family.

    import unmask as um

    corpus = um.prepare(["news/*.txt"], out="data", recipe="wwm")
    run = um.pretrain("wwm", corpus, out="runs/w", size="tiny", steps=1000)
    run.load().fill_mask("今天天气真[MASK]")

Names are imported when they are first used, so `import unmask` loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unmask import config as config
    from unmask import finetuning as finetuning
    from unmask import parts as parts
    from unmask.api.evaluate_suite import evaluate as evaluate
    from unmask.api.finetune import FineTuneOptions as FineTuneOptions
    from unmask.api.finetune import finetune as finetune
    from unmask.api.models import FineTunedModel as FineTunedModel
    from unmask.api.models import Model as Model
    from unmask.api.models import load as load
    from unmask.api.prepare import prepare as prepare
    from unmask.api.prepare_options import PrepareOptions as PrepareOptions
    from unmask.api.pretrain import pretrain as pretrain
    from unmask.api.recipes import (
        audit as audit,
    )
    from unmask.api.recipes import (
        diff as diff,
    )
    from unmask.api.recipes import (
        list_recipes as list_recipes,
    )
    from unmask.api.recipes import (
        recipe as recipe,
    )
    from unmask.api.recipes import (
        task_batches as task_batches,
    )
    from unmask.api.recipes import (
        walk as walk,
    )
    from unmask.api.run import Run as Run
    from unmask.core.errors import UserError as UserError
    from unmask.data.corpus.corpus import Corpus as Corpus
    from unmask.finetuning.task_options import TaskOptions as TaskOptions
    from unmask.interop.hf.parity_check import ParityReport as ParityReport
    from unmask.lab.compare.run import compare as compare
    from unmask.tasks.recipe import Recipe as Recipe

_HOMES = {
    "prepare": "unmask.api.prepare",
    "Corpus": "unmask.data.corpus.corpus",
    "pretrain": "unmask.api.pretrain",
    "Run": "unmask.api.run",
    "Model": "unmask.api.models",
    "FineTunedModel": "unmask.api.models",
    "load": "unmask.api.models",
    "finetune": "unmask.api.finetune",
    "evaluate": "unmask.api.evaluate_suite",
    "compare": "unmask.lab.compare.run",
    "Recipe": "unmask.tasks.recipe",
    "recipe": "unmask.api.recipes",
    "list_recipes": "unmask.api.recipes",
    "diff": "unmask.api.recipes",
    "walk": "unmask.api.recipes",
    "audit": "unmask.api.recipes",
    "task_batches": "unmask.api.recipes",
    "ParityReport": "unmask.interop.hf.parity_check",
    "FineTuneOptions": "unmask.api.finetune",
    "PrepareOptions": "unmask.api.prepare_options",
    "TaskOptions": "unmask.finetuning.task_options",
    "UserError": "unmask.core.errors",
}
"""The module of each public name."""
_MODULES = ("config", "finetuning", "parts")
"""Public modules: settings, tasks and methods of fine-tuning, the building blocks of a recipe."""
__all__ = ["__version__", *_MODULES, *_HOMES]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"unmask.{name}")
    raise AttributeError(f"module 'unmask' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

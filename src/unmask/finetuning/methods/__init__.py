"""Fine-tuning methods: which parameters are trained, and what is added.

The classes are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unmask.finetuning.methods.adapter import Adapter as Adapter
    from unmask.finetuning.methods.frozen import FrozenEncoder as FrozenEncoder
    from unmask.finetuning.methods.frozen import ScalarMixing as ScalarMixing
    from unmask.finetuning.methods.lora import Lora as Lora
    from unmask.finetuning.methods.protocol import FullFineTuning as FullFineTuning
    from unmask.finetuning.methods.unfreezing import GradualUnfreezing as GradualUnfreezing
    from unmask.finetuning.methods.unfreezing import NormOnly as NormOnly
    from unmask.finetuning.methods.unfreezing import TopLayers as TopLayers

_HOMES = {
    "Adapter": "unmask.finetuning.methods.adapter",
    "FrozenEncoder": "unmask.finetuning.methods.frozen",
    "FullFineTuning": "unmask.finetuning.methods.protocol",
    "GradualUnfreezing": "unmask.finetuning.methods.unfreezing",
    "Lora": "unmask.finetuning.methods.lora",
    "NormOnly": "unmask.finetuning.methods.unfreezing",
    "ScalarMixing": "unmask.finetuning.methods.frozen",
    "TopLayers": "unmask.finetuning.methods.unfreezing",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

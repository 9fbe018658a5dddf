"""The five dialects, and what can be asked of any: its classes, its tables, and which class suits a network.

What arrives: a class, or a network. What leaves: names and tables.
What never happens here: a name of one dialect; each has its own file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unmask.config.model_type import ModelType
from unmask.config.network import NetworkConfig, TransformerConfig
from unmask.interop.hf.architecture import Architecture, HFTask
from unmask.interop.hf.model_map import ModelMap, Parts
from unmask.interop.hf.models.albert import ALBERT
from unmask.interop.hf.models.bert import BERT
from unmask.interop.hf.models.electra import ELECTRA
from unmask.interop.hf.models.ernie import ERNIE
from unmask.interop.hf.models.roberta import ROBERTA
from unmask.interop.hf.weight_names import encoder_table, table_for
from unmask.interop.hf.weight_table import WeightTable
from unmask.nets.model import EncoderWithHeads


def model_map(model_type: ModelType) -> ModelMap:
    """The grammar of a dialect."""
    match model_type:
        case ModelType.BERT:
            return BERT
        case ModelType.ROBERTA:
            return ROBERTA
        case ModelType.ALBERT:
            return ALBERT
        case ModelType.ERNIE:
            return ERNIE
        case ModelType.ELECTRA:
            return ELECTRA


def architectures(model_type: ModelType) -> Iterator[Architecture]:
    """All classes of a dialect that a folder can be written for."""
    return (Architecture(model_type, purpose) for purpose in model_map(model_type).heads_by_task)


def tasks_of(model_type: ModelType, names: Iterable[str]) -> frozenset[HFTask]:
    """What the classes with these names are for, as far as they are known."""
    given = {*names}
    return frozenset(one.task for one in architectures(model_type) if one.name in given)


def architecture_named(name: str) -> Architecture:
    """The class that has this name, which must be one that can be written."""
    (found,) = (one for dialect in ModelType for one in architectures(dialect) if one.name == name)
    return found


def parts_of(architecture: Architecture) -> Parts:
    """What stands on the trunk in a class."""
    return model_map(architecture.model_type).heads_by_task[architecture.task]


def weight_table_for(architecture: Architecture, trunk: TransformerConfig) -> WeightTable:
    """The table that a folder of this class is written with. Layers that cannot share there are written one by one."""
    grammar = model_map(architecture.model_type)
    make = encoder_table if architecture.task is HFTask.ENCODER else table_for
    return make(grammar, parts_of(architecture), grammar.layer_names.expressible(trunk), architecture.name)


def can_express(model_type: ModelType, trunk: NetworkConfig) -> bool:
    """Whether a dialect has words for a trunk, whatever stands on it."""
    return isinstance(trunk, TransformerConfig) and not model_map(model_type).inexpressible(trunk, Parts())


def model_type_for(trunk: NetworkConfig, wanted: ModelType) -> ModelType:
    """The dialect that a trunk is written in: the wanted one, or another that has words for its shape.

    Where none has, it is the wanted one, whose refusal says why.
    """
    return next((one for one in (wanted, *ModelType) if can_express(one, trunk)), wanted)


def best_architecture(model: EncoderWithHeads, model_type: ModelType = ModelType.BERT) -> Architecture:
    """The class that leaves nothing of a pre-trained network behind, or as little as can be."""
    has = {
        HFTask.DISCRIMINATOR: model.discriminator_head is not None,
        HFTask.PRE_TRAINING: model.lm_head is not None and model.row_head is not None,
        HFTask.MASKED_LM: model.lm_head is not None,
        HFTask.ENCODER: True,
    }
    known = model_map(model_type).heads_by_task
    return Architecture(model_type, next(purpose for purpose, there in has.items() if there and purpose in known))

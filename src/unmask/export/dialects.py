"""The five dialects, and what can be asked of any: its classes, its tables, and which class suits a network.

What arrives: a class, or a network. What leaves: names and tables.
What never happens here: a name of one dialect; each has its own file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unmask.dialect import Dialect
from unmask.export.albert import ALBERT
from unmask.export.architecture import Architecture, Purpose
from unmask.export.bert import BERT
from unmask.export.electra import ELECTRA
from unmask.export.ernie import ERNIE
from unmask.export.grammar import Grammar, Parts
from unmask.export.naming import bare_table, table_for
from unmask.export.roberta import ROBERTA
from unmask.export.table import NameTable
from unmask.nets.model import Model
from unmask.nets.trunk import Trunk


def grammar_of(dialect: Dialect) -> Grammar:
    """The grammar of a dialect."""
    match dialect:
        case Dialect.BERT:
            return BERT
        case Dialect.ROBERTA:
            return ROBERTA
        case Dialect.ALBERT:
            return ALBERT
        case Dialect.ERNIE:
            return ERNIE
        case Dialect.ELECTRA:
            return ELECTRA


def architectures(dialect: Dialect) -> Iterator[Architecture]:
    """All classes of a dialect that a folder can be written for."""
    return (Architecture(dialect, purpose) for purpose in grammar_of(dialect).classes)


def purposes(dialect: Dialect, names: Iterable[str]) -> frozenset[Purpose]:
    """What the classes with these names are for, as far as they are known."""
    given = {*names}
    return frozenset(one.purpose for one in architectures(dialect) if one.name in given)


def architecture_named(name: str) -> Architecture:
    """The class that has this name, which must be one that can be written."""
    (found,) = (one for dialect in Dialect for one in architectures(dialect) if one.name == name)
    return found


def parts_of(architecture: Architecture) -> Parts:
    """What stands on the trunk in a class."""
    return grammar_of(architecture.dialect).classes[architecture.purpose]


def table_of(architecture: Architecture, trunk: Trunk) -> NameTable:
    """The table that a folder of this class is written with. Layers that cannot share there are written one by one."""
    grammar = grammar_of(architecture.dialect)
    make = bare_table if architecture.purpose is Purpose.ENCODER else table_for
    return make(grammar, parts_of(architecture), grammar.stack.written(trunk), architecture.name)


def can_say(dialect: Dialect, trunk: Trunk) -> bool:
    """Whether a dialect has words for a trunk, whatever stands on it."""
    return not grammar_of(dialect).beyond(trunk, Parts())


def dialect_for(trunk: Trunk, wanted: Dialect) -> Dialect:
    """The dialect that a trunk is written in: the wanted one, or another that has words for its shape.

    Where none has, it is the wanted one, whose refusal says why.
    """
    return next((one for one in (wanted, *Dialect) if can_say(one, trunk)), wanted)


def fitting(model: Model, dialect: Dialect = Dialect.BERT) -> Architecture:
    """The class that leaves nothing of a pre-trained network behind, or as little as can be."""
    has = {
        Purpose.DISCRIMINATOR: model.replaced is not None,
        Purpose.PRE_TRAINING: model.tokens is not None and model.row is not None,
        Purpose.MASKED_LM: model.tokens is not None,
        Purpose.ENCODER: True,
    }
    known = grammar_of(dialect).classes
    return Architecture(dialect, next(purpose for purpose, there in has.items() if there and purpose in known))

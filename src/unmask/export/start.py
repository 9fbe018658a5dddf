"""A beginning that is not drawn by lot: the weights of a network that was trained before.

What arrives: a network with its tokenizer, and the tokenizer of the corpus it is to be trained on.
What leaves: the same network with rows for new words, and its weights in the trunk and the heads of a learner.
What never happens here: a guess. A corpus whose ids mean something else is refused.
"""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from unmask.errors import InputError
from unmask.export.grow import extend_rows
from unmask.export.table import some
from unmask.nets.heads import RowHead, TokenHead
from unmask.nets.model import Model
from unmask.nets.trunk import Trunk
from unmask.tokenize.extend import pieces_between
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.learner import Learner


def begin_from(model: Model, old: Tokenizer, new: Tokenizer, where: str = "FOLDER") -> Model:
    """The network for a corpus whose tokenizer is its own, or its own with new words.

    A new word begins as the mean of the pieces that it was written with before. `where` is what the advice calls the
    folder of the network.
    """
    try:
        pieces = pieces_between(old, new)
    except InputError as error:
        raise InputError(
            f"The corpus was not prepared for the network in {where}, so its ids would be misread. {error} Prepare the "
            f"corpus again with: --tokenizer {where}/tokenizer.json (new words may be added with --extend)."
        ) from error
    return extend_rows(model, pieces) if pieces else model


def fill_learner(learner: Learner, model: Model) -> tuple[str, ...]:
    """Put the weights of a network into a learner. Returns the heads that keep weights of their own, drawn by lot.

    The trunk must have the same shape. A head takes what the network has for it: the head for tokens, and the head for
    rows where it has equally many classes.
    """
    _check_shape(learner, model)
    learner.trunk.load_state_dict(model.trunk.state_dict())
    return tuple(name for name, head in learner.heads.items() if not _fill_head(head, model))


def _fill_head(head: nn.Module, model: Model) -> bool:
    """Whether every part of a head that holds weights was found in the network."""
    found = [_fill_part(part, model) for part in head.children() if part.state_dict()]
    return bool(found) and all(found)


def _fill_part(part: nn.Module, model: Model) -> bool:
    match part:
        case TokenHead() if model.tokens is not None:
            part.load_state_dict(model.tokens.state_dict())
            return True
        case RowHead() if model.row is not None and part.classify.out_features == model.row.classify.out_features:
            part.pool.load_state_dict(model.row.pool.state_dict())
            return _fill_classes(part, model.row)
    return False


def _fill_classes(part: RowHead, row: RowHead) -> bool:
    """A bare encoder has a pooler and no classes; `read.load` makes them zero, and then there is nothing to take."""
    if not row.classify.weight.any():
        return False
    part.classify.load_state_dict(row.classify.state_dict())
    return True


def _check_shape(learner: Learner, model: Model) -> None:
    """Refuse another trunk: one that works in another way, or has tensors of other sizes."""
    needed, found = _works(learner.trunk.trunk), _works(model.shape)
    wrong = [] if needed == found else [f"its trunk is {found}, needed is {needed}"]
    theirs = model.trunk.state_dict()
    wrong += [
        f"{name} is {tuple(theirs[name].shape)}, needed is {tuple(ours.shape)}"
        for name, ours in learner.trunk.state_dict().items()
        if name in theirs and ours.shape != theirs[name].shape
    ]
    if wrong:
        raise InputError(f"This network cannot be the beginning of that one: {some(wrong, 2)}.")


def _works(trunk: Trunk) -> Trunk:
    """The shape without what concerns training alone."""
    return replace(trunk, dropout=0.0, attention_dropout=0.0, spread=0.02)

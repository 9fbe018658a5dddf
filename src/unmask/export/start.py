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
from unmask.nets.heads import ReplacedHead, RowHead, TokenHead
from unmask.nets.model import Model
from unmask.nets.trunk import Activation, Sharing, Trunk
from unmask.objectives.guessing import Guessing
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


def fill_learner(learner: Learner, model: Model, generator: Model | None = None) -> tuple[str, ...]:
    """Put the weights of a network into a learner. Returns the heads that keep weights of their own, drawn by lot.

    The trunk must have the same shape. A head takes what the network has for it: the head for tokens, the head for rows
    where it has equally many classes, and the head for replaced tokens. A network has learned one truth about rows, so
    that one head takes it: the first by name, which is also the one that an export keeps. A generator ahead of the
    trunk takes the one that comes along, if it has its shape.
    """
    _check_shape(learner, model)
    learner.trunk.load_state_dict(model.trunk.state_dict())
    rows = min((name for name, head in learner.heads.items() if _reads_rows(head, model)), default="")
    return tuple(
        name
        for name, head in learner.heads.items()
        if not (
            _fill_generator(head, generator) if isinstance(head, Guessing) else _fill_head(head, model, name == rows)
        )
    )


def _reads_rows(head: nn.Module, model: Model) -> bool:
    """Whether a head says a truth about rows in the way of the network."""
    parts = (part for part in head.children() if isinstance(part, RowHead))
    return model.row is not None and any(_alike(part, model.row) for part in parts)


def _fill_head(head: nn.Module, model: Model, rows: bool) -> bool:
    """Whether every part of a head that holds weights was found in the network."""
    found = [_fill_part(part, model, rows) for part in head.children() if part.state_dict()]
    return bool(found) and all(found)


def _fill_generator(head: Guessing, generator: Model | None) -> bool:
    """Whether the generator is the same network; what it shares with the trunk it has already."""
    if generator is None or generator.tokens is None or _works(head.network.trunk) != _works(generator.shape):
        return False
    head.network.load_state_dict(generator.trunk.state_dict())
    head.tokens.load_state_dict(generator.tokens.state_dict())
    return True


def _fill_part(part: nn.Module, model: Model, rows: bool) -> bool:
    match part:
        case TokenHead() if model.tokens is not None:
            part.load_state_dict(model.tokens.state_dict())
            return True
        case RowHead() if rows and model.row is not None:
            part.pool.load_state_dict(model.row.pool.state_dict())
            return _fill_classes(part, model.row)
        case ReplacedHead() if model.replaced is not None:
            part.load_state_dict(model.replaced.state_dict())
            return True
    return False


def _alike(part: RowHead, row: RowHead) -> bool:
    """Whether two heads for rows work in the same way."""
    return part.activation is row.activation and part.classify.out_features == row.classify.out_features


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
    """The shape without what concerns training or heads alone; sharing that shares nothing is none."""
    plain = replace(trunk, dropout=0.0, attention_dropout=0.0, spread=0.02, embedding=trunk.token_width)
    plain = replace(plain, pooled=Activation.TANH)
    return plain if trunk.sets < trunk.depth else replace(plain, sharing=Sharing.NONE, groups=1, cycle=1)

"""A beginning that is not drawn by lot: the weights of a network that was trained before.

What arrives: a network with its tokenizer, and the tokenizer of the corpus it is to be trained on.
What leaves: the same network with rows for new words, and its weights in the trunk and the heads of a learner.
What never happens here: a guess. A corpus whose ids mean something else is refused.
"""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from unmask.config.network import Activation, NetworkConfig, Sharing, TransformerConfig
from unmask.core.errors import InputError
from unmask.data.tokenize.extend import old_pieces_of_new_ids
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.hf.weight_table import first_few
from unmask.loading.resize_embeddings import resize_embeddings
from unmask.nets.layers.heads import DiscriminatorHead, LMHead, PoolerClassifier
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.heads.generator import GeneratorModule
from unmask.train.multi_head_model import MultiHeadModel


def adapt_to_tokenizer(
    model: EncoderWithHeads, old: Tokenizer, new: Tokenizer, where: str = "FOLDER"
) -> EncoderWithHeads:
    """The network for a corpus whose tokenizer is its own, or its own with new words.

    A new word begins as the mean of the pieces that it was written with before. `where` is what the advice calls the
    folder of the network.
    """
    try:
        pieces = old_pieces_of_new_ids(old, new)
    except InputError as error:
        raise InputError(
            f"The corpus was not prepared for the network in {where}, so its ids would be misread. {error} Prepare the "
            f"corpus again with: --tokenizer {where}/tokenizer.json (new words may be added with --extend)."
        ) from error
    return resize_embeddings(model, pieces) if pieces else model


def load_matching_weights(
    learner: MultiHeadModel, model: EncoderWithHeads, generator: EncoderWithHeads | None = None
) -> tuple[str, ...]:
    """Put the weights of a network into a learner. Returns the heads that keep weights of their own, drawn by lot.

    The trunk must have the same shape. A head takes what the network has for it: the head for tokens, the head for rows
    where it has equally many classes, and the head for replaced tokens. A network has learned one truth about rows, so
    that one head takes it: the first by name, which is also the one that an export keeps. A generator ahead of the
    trunk takes the one that comes along, if it has its shape.
    """
    _check_shape(learner, model)
    learner.network.load_state_dict(model.network.state_dict())
    rows = min((name for name, head in learner.heads.items() if _reads_rows(head, model)), default="")
    return tuple(
        name
        for name, head in learner.heads.items()
        if not (
            _load_generator(head, generator)
            if isinstance(head, GeneratorModule)
            else _load_head(head, model, name == rows)
        )
    )


def _reads_rows(head: nn.Module, model: EncoderWithHeads) -> bool:
    """Whether a head says a truth about rows in the way of the network."""
    parts = (part for part in head.children() if isinstance(part, PoolerClassifier))
    return model.row_head is not None and any(_same_kind(part, model.row_head) for part in parts)


def _load_head(head: nn.Module, model: EncoderWithHeads, rows: bool) -> bool:
    """Whether every part of a head that holds weights was found in the network."""
    found = [_load_part(part, model, rows) for part in head.children() if part.state_dict()]
    return bool(found) and all(found)


def _load_generator(head: GeneratorModule, generator: EncoderWithHeads | None) -> bool:
    """Whether the generator is the same network; what it shares with the trunk it has already."""
    if (
        generator is None
        or generator.lm_head is None
        or _comparable_config(head.network.config) != _comparable_config(generator.config)
    ):
        return False
    head.network.load_state_dict(generator.network.state_dict())
    head.lm_head.load_state_dict(generator.lm_head.state_dict())
    return True


def _load_part(part: nn.Module, model: EncoderWithHeads, rows: bool) -> bool:
    match part:
        case LMHead() if model.lm_head is not None:
            part.load_state_dict(model.lm_head.state_dict())
            return True
        case PoolerClassifier() if rows and model.row_head is not None:
            part.pool.load_state_dict(model.row_head.pool.state_dict())
            return _load_classes(part, model.row_head)
        case DiscriminatorHead() if model.discriminator_head is not None:
            part.load_state_dict(model.discriminator_head.state_dict())
            return True
    return False


def _same_kind(part: PoolerClassifier, row: PoolerClassifier) -> bool:
    """Whether two heads for rows work in the same way."""
    return part.activation is row.activation and part.classify.out_features == row.classify.out_features


def _load_classes(part: PoolerClassifier, row: PoolerClassifier) -> bool:
    """A bare encoder has a pooler and no classes; `read.load` makes them zero, and then there is nothing to take."""
    if not row.classify.weight.any():
        return False
    part.classify.load_state_dict(row.classify.state_dict())
    return True


def _check_shape(learner: MultiHeadModel, model: EncoderWithHeads) -> None:
    """Refuse another trunk: one that works in another way, or has tensors of other sizes."""
    needed, found = _comparable_config(learner.network.config), _comparable_config(model.config)
    wrong = [] if needed == found else [f"its trunk is {found}, needed is {needed}"]
    theirs = model.network.state_dict()
    wrong += [
        f"{name} is {tuple(theirs[name].shape)}, needed is {tuple(ours.shape)}"
        for name, ours in learner.network.state_dict().items()
        if name in theirs and ours.shape != theirs[name].shape
    ]
    if wrong:
        raise InputError(f"This network cannot be the beginning of that one: {first_few(wrong, 2)}.")


def _comparable_config(config: NetworkConfig) -> NetworkConfig:
    """The shape without what concerns training or heads alone; sharing among single layers is none."""
    if not isinstance(config, TransformerConfig):
        return config.with_dropout(0.0)
    plain = replace(config.with_dropout(0.0), init_std=0.02, embedding_width=config.token_width)
    plain = replace(plain, pooler_activation=Activation.TANH)
    shared = config.num_distinct_layers < config.depth
    return plain if shared else replace(plain, sharing=Sharing.NONE, share_groups=1, layers_per_group=1)

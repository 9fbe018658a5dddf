"""Warm start: initialize a model from the weights of another network, with an equal or an extended tokenizer."""

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
    """The network for the tokenizer of a corpus, which must be its own or its own with new entries.

    The embedding of a new entry is the mean over its old pieces. `where` names the folder of the network in messages.
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
    target: MultiHeadModel, model: EncoderWithHeads, generator: EncoderWithHeads | None = None
) -> tuple[str, ...]:
    """Copy the weights of a network into a model. Returns the names of the heads that keep their initial weights.

    The encoders must have the same shape. A head takes the weights of the network's head of the same kind. The row
    head of the network goes to one head only, the first by name, which is also the one an export keeps. A generator
    module takes the weights of `generator` if the shapes are equal.
    """
    _check_shape(target, model)
    target.network.load_state_dict(model.network.state_dict())
    row_head = min((name for name, head in target.heads.items() if _has_matching_row_head(head, model)), default="")
    return tuple(
        name
        for name, head in target.heads.items()
        if not (
            _load_generator(head, generator)
            if isinstance(head, GeneratorModule)
            else _load_head(head, model, name == row_head)
        )
    )


def _has_matching_row_head(head: nn.Module, model: EncoderWithHeads) -> bool:
    parts = (part for part in head.children() if isinstance(part, PoolerClassifier))
    return model.row_head is not None and any(_same_kind(part, model.row_head) for part in parts)


def _load_head(head: nn.Module, model: EncoderWithHeads, takes_row_head: bool) -> bool:
    """Load the parts of a head. Returns whether all parts with weights were found in the network."""
    found = [_load_part(part, model, takes_row_head) for part in head.children() if part.state_dict()]
    return bool(found) and all(found)


def _load_generator(head: GeneratorModule, generator: EncoderWithHeads | None) -> bool:
    """Load a generator of the same shape. Returns whether it fits. Shared weights are loaded with the encoder."""
    if generator is None or generator.lm_head is None:
        return False
    if _comparable_config(head.encoder.config) != _comparable_config(generator.config):
        return False
    head.encoder.load_state_dict(generator.network.state_dict())
    head.lm_head.load_state_dict(generator.lm_head.state_dict())
    return True


def _load_part(part: nn.Module, model: EncoderWithHeads, takes_row_head: bool) -> bool:
    match part:
        case LMHead() if model.lm_head is not None:
            part.load_state_dict(model.lm_head.state_dict())
            return True
        case PoolerClassifier() if takes_row_head and model.row_head is not None:
            part.pool.load_state_dict(model.row_head.pool.state_dict())
            return _load_classes(part, model.row_head)
        case DiscriminatorHead() if model.discriminator_head is not None:
            part.load_state_dict(model.discriminator_head.state_dict())
            return True
    return False


def _same_kind(part: PoolerClassifier, row_head: PoolerClassifier) -> bool:
    """Whether two row heads have the same activation and number of classes."""
    return part.activation is row_head.activation and part.classify.out_features == row_head.classify.out_features


def _load_classes(part: PoolerClassifier, row_head: PoolerClassifier) -> bool:
    """Load the classes. A bare encoder has none: `load_hf_model` sets them to zero, which is not copied."""
    if not row_head.classify.weight.any():
        return False
    part.classify.load_state_dict(row_head.classify.state_dict())
    return True


def _check_shape(target: MultiHeadModel, model: EncoderWithHeads) -> None:
    """Refuse an encoder with another configuration or with tensors of other sizes."""
    needed, found = _comparable_config(target.network.config), _comparable_config(model.config)
    wrong = [] if needed == found else [f"its encoder is {found}, needed is {needed}"]
    theirs = model.network.state_dict()
    wrong += [
        f"{name} is {tuple(theirs[name].shape)}, needed is {tuple(ours.shape)}"
        for name, ours in target.network.state_dict().items()
        if name in theirs and ours.shape != theirs[name].shape
    ]
    if wrong:
        raise InputError(
            f"A model cannot be initialized from this network: {first_few(wrong, 2)}. Name a network of the same shape."
        )


def _comparable_config(config: NetworkConfig) -> NetworkConfig:
    """The shape without settings of training and heads; sharing that affects no layer counts as none."""
    if not isinstance(config, TransformerConfig):
        return config.with_dropout(0.0)
    plain = replace(config.with_dropout(0.0), init_std=0.02, embedding_width=config.token_width)
    plain = replace(plain, pooler_activation=Activation.TANH)
    shares = config.num_distinct_layers < config.depth
    return plain if shares else replace(plain, sharing=Sharing.NONE, share_groups=1, layers_per_group=1)

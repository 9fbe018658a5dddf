"""What is saved apart from its trunk, and the way back onto that trunk.

What arrives: a learner and its policy; later a network that should be the same trunk.
What leaves: the weights that moved, a fingerprint of those that rested; later a learner on that trunk.
What never happens here: a part that was learned on one trunk at work on another. The fingerprint decides, not the name.
"""

from __future__ import annotations

from torch import Tensor

from unmask.core.errors import InputError
from unmask.finetuning.methods.protocol import Method, param_lrs
from unmask.nets.model import EncoderWithHeads
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.rundir.weights_digest import digest_of_weights


def trained_weights(learner: MultiHeadModel, method: Method) -> dict[str, Tensor]:
    """The weights that a policy moves. These are the live tensors, not copies."""
    paces = param_lrs(method, learner)
    return {name: tensor for name, tensor in learner.named_weights().items() if paces(name).is_trained}


def base_weights(learner: MultiHeadModel, method: Method) -> dict[str, Tensor]:
    """The weights that a policy leaves as they were."""
    moved = trained_weights(learner, method)
    return {name: tensor for name, tensor in learner.named_weights().items() if name not in moved}


def base_digest(learner: MultiHeadModel, method: Method) -> str:
    """A fingerprint of what was not trained: what a trunk must be the same in."""
    return digest_of_weights(base_weights(learner, method))


def attach_delta(learner: MultiHeadModel, method: Method, model: EncoderWithHeads, digest: str, what: str) -> None:
    """Give a learner the trunk of a network, and room for what the policy trained; refuses any other trunk."""
    try:
        learner.network.load_state_dict(model.network.state_dict())
    except RuntimeError as error:
        raise _wrong_base_error(what) from error
    method.add_modules(learner, 0)
    if base_digest(learner, method) != digest:
        raise _wrong_base_error(what)


def _wrong_base_error(what: str) -> InputError:
    return InputError(
        f"{what} holds only what was learned on top of a network, and that was another network than this one: the "
        "weights differ. Name the one that it was tuned from with --base-model, or tune again on this one."
    )

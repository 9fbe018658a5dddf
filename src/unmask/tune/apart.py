"""What is saved apart from its trunk, and the way back onto that trunk.

What arrives: a learner and its policy; later a network that should be the same trunk.
What leaves: the weights that moved, a fingerprint of those that rested; later a learner on that trunk.
What never happens here: a part that was learned on one trunk at work on another. The fingerprint decides, not the name.
"""

from __future__ import annotations

from torch import Tensor

from unmask.errors import InputError
from unmask.nets.model import Model
from unmask.train.learner import Learner
from unmask.tune.digest import digest_of_weights
from unmask.tune.policy import Policy, paces_of


def moving(learner: Learner, policy: Policy) -> dict[str, Tensor]:
    """The weights that a policy moves. These are the live tensors, not copies."""
    paces = paces_of(policy, learner)
    return {name: tensor for name, tensor in learner.weights().items() if paces(name).moves}


def resting(learner: Learner, policy: Policy) -> dict[str, Tensor]:
    """The weights that a policy leaves as they were."""
    moved = moving(learner, policy)
    return {name: tensor for name, tensor in learner.weights().items() if name not in moved}


def digest_at_rest(learner: Learner, policy: Policy) -> str:
    """A fingerprint of what was not trained: what a trunk must be the same in."""
    return digest_of_weights(resting(learner, policy))


def put_on(learner: Learner, policy: Policy, model: Model, digest: str, what: str) -> None:
    """Give a learner the trunk of a network, and room for what the policy trained; refuses any other trunk."""
    try:
        learner.trunk.load_state_dict(model.trunk.state_dict())
    except RuntimeError as error:
        raise _another(what) from error
    policy.equip(learner, 0)
    if digest_at_rest(learner, policy) != digest:
        raise _another(what)


def _another(what: str) -> InputError:
    return InputError(
        f"{what} holds only what was learned on top of a network, and that was another network than this one: the "
        "weights differ. Name the one that it was tuned from with --network, or tune again on this one."
    )

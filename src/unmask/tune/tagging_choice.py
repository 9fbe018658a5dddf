"""Which tag is said: from the scores of every word to one tag each.

What arrives: scores, sentence after sentence, from whichever windows. What leaves: the number of one tag for each word.
What never happens here: a draw, or a step that is forbidden where only legal ones are asked for.

Shapes: W words of all sentences, C classes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from unmask.objectives.chain import Chains, Steps, best_paths
from unmask.objectives.tagging import TagsTogether
from unmask.ragged import ranges
from unmask.records import Floats, Ints
from unmask.tune.tagging_scheme import Legal

_AT_ONCE = 64


@torch.no_grad()
def legal_steps(head: nn.Module, allowed: Legal) -> Steps:
    """Scores of the steps that a scheme allows: what a head has learned about them, or all the same."""
    if isinstance(head, TagsTogether):
        return Steps(*(score.cpu() for score in head.legal_steps.parts))
    return Steps.free(len(allowed.start)).only(*map(torch.from_numpy, allowed))


def best_together(scores_WC: Floats, begin: Ints, steps: Steps) -> Ints:
    """The tags of the best path through each sentence, which are `begin[i]:begin[i + 1]`."""
    lengths = np.diff(begin)
    order = np.argsort(lengths, kind="stable")  # sentences of like length together
    said_W = np.zeros(len(scores_WC), dtype=np.int64)
    for first in range(0, len(order), _AT_ONCE):
        some = order[first : first + _AT_ONCE]
        words = ranges(begin[some], lengths[some])
        chains = Chains.of(torch.from_numpy(scores_WC[words]), tuple(lengths[some].tolist()))
        said_W[words] = best_paths(chains, steps).numpy()
    return said_W

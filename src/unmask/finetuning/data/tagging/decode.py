"""Which tag is said: from the scores of every word to one tag each.

What arrives: scores, sentence after sentence, from whichever windows. What leaves: the number of one tag for each word.
What never happens here: a draw, or a step that is forbidden where only legal ones are asked for.

Shapes: W words of all sentences, C classes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from unmask.core.ragged import concat_ranges
from unmask.core.records import Floats, Ints
from unmask.finetuning.data.tagging.schemes import AllowedTransitions
from unmask.objectives.heads.crf import Emissions, Transitions, viterbi
from unmask.objectives.heads.tagging import CRFHead

_BATCH_SIZE = 64


@torch.no_grad()
def constrained_transitions(head: nn.Module, allowed: AllowedTransitions) -> Transitions:
    """Scores of the steps that a scheme allows: what a head has learned about them, or all the same."""
    if isinstance(head, CRFHead):
        return Transitions(*(score.cpu() for score in head.allowed_transitions.tensors))
    return Transitions.zeros(len(allowed.start)).masked(*map(torch.from_numpy, allowed))


def viterbi_tags(scores_WC: Floats, begin: Ints, steps: Transitions) -> Ints:
    """The tags of the best path through each sentence, which are `begin[i]:begin[i + 1]`."""
    lengths = np.diff(begin)
    order = np.argsort(lengths, kind="stable")  # sentences of like length together
    said_W = np.zeros(len(scores_WC), dtype=np.int64)
    for first in range(0, len(order), _BATCH_SIZE):
        some = order[first : first + _BATCH_SIZE]
        words = concat_ranges(begin[some], lengths[some])
        chains = Emissions.from_flat(torch.from_numpy(scores_WC[words]), tuple(lengths[some].tolist()))
        said_W[words] = viterbi(chains, steps).numpy()
    return said_W

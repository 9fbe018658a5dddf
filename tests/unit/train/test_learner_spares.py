"""A last block that is computed where heads read it: which places they name, and when all are computed after all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from unmask.config.network import TransformerConfig
from unmask.core.ragged import positions_in_rows
from unmask.core.records import Cloze, Inputs, InputsAndTargets, RowClass, Spans
from unmask.nets.batch.batch import Batch, collate
from unmask.nets.layers.scalar_mix import ScalarMix
from unmask.objectives.all_tokens_mlm import AllTokensMLM
from unmask.objectives.generator import Generator
from unmask.objectives.mlm import MLM
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD, JudgedTokens
from unmask.objectives.sentence_pair import NSP, SOP
from unmask.train.multi_head_model import MultiHeadModel

TRUNK = TransformerConfig(depth=2, width=16, heads=2, ffn_width=32)
ROWS = np.array([0, 9, 16])
PLACES = np.array([2, 3, 12])


def batch() -> Batch:
    ids = np.arange(16, dtype=np.int32) + 4
    flat = np.zeros(16)
    inputs = Inputs(ids, flat.astype(np.uint8), flat.astype(np.int32), positions_in_rows(ROWS), ROWS)
    cloze = Cloze(PLACES, ids[PLACES], Spans(PLACES, PLACES + 1))
    return collate(
        InputsAndTargets(inputs, (cloze, RowClass("next", np.array([0, 1])), RowClass("order", np.array([1, 1]))))
    )


def learner(*objectives: Objective) -> MultiHeadModel:
    made = MultiHeadModel(TRUNK, objectives, 32, 16)
    made.init_weights(0)
    return made.eval()


def rows_and_losses(made: MultiHeadModel, *objectives: Objective) -> tuple[int, list[float]]:
    """How many tokens went through the last feed-forward layer of the trunk, and what was lost."""
    seen: list[int] = []
    hook = made.network.blocks()[-1].ffn.register_forward_hook(lambda _, given, out: seen.append(len(out)))
    losses = [float(term.total.detach()) for term in made(batch(), objectives)]
    hook.remove()
    return seen[-1], losses


def test_two_heads_that_read_the_same_places_share_them() -> None:
    made = learner(MLM(), NSP, SOP)
    rows, losses = rows_and_losses(made, MLM(), NSP, SOP)
    assert rows == len(PLACES) + len(ROWS) - 1
    made.set_sparse_last_block(False)
    everything, expected = rows_and_losses(made, MLM(), NSP, SOP)
    assert everything == 16
    torch.testing.assert_close(losses, expected, rtol=1e-5, atol=1e-5)


def test_one_head_that_reads_all_is_enough_for_all() -> None:
    made = learner(Generator(), AllTokensMLM(), MLM())
    assert rows_and_losses(made, Generator(), AllTokensMLM(), MLM())[0] == 16


def test_replaced_tokens_are_judged_where_they_are_chosen() -> None:
    chosen = RTD(judged_tokens=JudgedTokens.CHOSEN)
    assert rows_and_losses(learner(Generator(), chosen), Generator(), chosen)[0] == len(PLACES)
    assert rows_and_losses(learner(Generator(), RTD()), Generator(), RTD())[0] == 16


def test_a_mixture_of_layers_reads_all() -> None:
    made = learner(MLM())
    made.layer_mix = ScalarMix(TRUNK.depth + 1)
    assert rows_and_losses(made, MLM())[0] == 16


def test_where_everything_is_asked_for_nothing_is_picked() -> None:
    made = learner(MLM())
    whole = batch()
    every_T = torch.arange(16)
    cloze = replace(whole.targets[0], positions=every_T, answers=whole.tokens.ids_T)
    (term,) = made(replace(whole, targets=(cloze,)), (MLM(),))
    assert term.count == 16
    assert made.network(whole.tokens, (every_T,)).requested == ()

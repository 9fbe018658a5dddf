"""Heads that write: their losses written out, what they are asked, and that they never read what is to come."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from unmask.config.attention_pattern import CAUSAL, FULL, PREFIX_LM, RowCoordinates, find_leaks
from unmask.config.network import TransformerConfig
from unmask.core.ragged import positions_in_rows
from unmask.core.records import ContinuationTarget, DecoderTarget, Inputs, InputsAndTargets
from unmask.nets.batch.batch import collate
from unmask.nets.batch.packed_sequences import MaskKind
from unmask.nets.layers.heads import LMHead
from unmask.objectives.seq2seq import PrefixLMObjective, Seq2SeqObjective
from unmask.train.multi_head_model import MultiHeadModel

CLS, SEP = 1, 2
TRUNK = TransformerConfig(depth=2, width=32, heads=4, ffn_width=64)
SOURCES, TEXTS = [[5, 6, 7], [8]], [[11, 12], [13, 14, 15]]


def inputs(rows, prefix=()):
    begin = np.cumsum([0, *map(len, rows)])
    ids = np.array([number for row in rows for number in row], dtype=np.int32)
    zeros = np.zeros(len(ids), dtype=np.int32)
    return Inputs(ids, zeros.astype(np.uint8), zeros, positions_in_rows(begin), begin, np.array(prefix, dtype=np.int64))


def behind(texts=TEXTS):
    """[CLS] source [SEP] text; the text and its end are said, each at the place before it."""
    heads = [[CLS, *source, SEP] for source in SOURCES]
    shown = inputs([head + text for head, text in zip(heads, texts, strict=True)], [len(head) for head in heads])
    ends = shown.rows[1:]
    at = [np.arange(end - len(text) - 1, end) for end, text in zip(ends, texts, strict=True)]
    answers = np.array([token for text in texts for token in (*text, SEP)], dtype=np.int32)
    return InputsAndTargets(shown, (ContinuationTarget(np.concatenate(at), answers),))


def beside(texts=TEXTS, more=()):
    """[CLS] source [SEP], and perhaps rows that are there for someone else."""
    begin = np.cumsum([0, *(len(text) + 1 for text in texts)])
    ids = np.array([token for text in texts for token in (*text, SEP)], dtype=np.int32)
    rows = [[CLS, *source, SEP] for source in SOURCES] + [[CLS, *row] for row in more]
    return InputsAndTargets(inputs(rows), (DecoderTarget(ids, begin, positions_in_rows(begin)),))


def learner(objective, seed=0):
    made = MultiHeadModel(TRUNK, (objective,), 50, 32)
    made.init_weights(seed)
    for parameter in made.parameters():
        parameter.data.mul_(5)  # so that tokens differ in more than rounding
    return made.eval()


CASES = [(PrefixLMObjective(), behind), (Seq2SeqObjective(8, depth=1), beside)]
every_version = pytest.mark.parametrize(("objective", "instance"), CASES, ids=["behind", "beside"])


@every_version
def test_every_token_and_every_end_is_asked_for(objective, instance):
    (term,) = learner(objective)(collate(instance(), attention=PREFIX_LM), (objective,))
    assert objective.has_head
    assert term.count == objective.num_predictions(instance()) == 7


def one_by_one(made, objective, instance):
    """The loss of one token after another: all later tokens are replaced, so that none can help."""
    total = 0.0
    for row, text in enumerate(TEXTS):
        for place in range(len(text) + 1):
            texts = [list(some) for some in TEXTS]
            texts[row] = text[:place] + [40] * (len(text) - place)
            batch = collate(instance(texts), attention=PREFIX_LM)
            truth = (*text, SEP)[place]
            before = sum(len(some) + 1 for some in TEXTS[:row])
            total += float(F.cross_entropy(said(made, objective, batch)[before + place], torch.tensor(truth)))
    return total


def said(made, objective, batch):
    """The logits at every place where something is asked."""
    head, states = made.heads[objective.name], made.network(batch.tokens)
    kept = []
    layer = head.lm_head if isinstance(objective, PrefixLMObjective) else head.decoder
    ask = layer.forward if isinstance(objective, PrefixLMObjective) else layer.logits

    def listen(x):
        kept.append(ask(x))
        return kept[-1]

    setattr(layer, "forward" if isinstance(objective, PrefixLMObjective) else "logits", listen)
    head(states, batch)
    delattr(layer, "forward" if isinstance(objective, PrefixLMObjective) else "logits")
    return kept[0]


@every_version
def test_no_token_is_known_before_it_is_said(objective, instance):
    made = learner(objective)
    with torch.no_grad():
        (term,) = made(collate(instance(), attention=PREFIX_LM), (objective,))
        assert float(term.total) == pytest.approx(one_by_one(made, objective, instance), abs=1e-3)


@every_version
def test_smoothing_is_for_learning_only(objective, instance):
    smooth = replace(objective, label_smoothing=0.1)
    batch = collate(instance(), attention=PREFIX_LM)
    made = learner(smooth)
    with torch.no_grad():
        logits = said(made, smooth, batch)
        answers = torch.tensor([11, 12, SEP, 13, 14, 15, SEP])
        spread = (
            0.9 * F.nll_loss(logits.log_softmax(-1), answers, reduction="sum")
            - 0.1 * logits.log_softmax(-1).mean(-1).sum()
        )
        judged = float(made(batch, (smooth,))[0].total)
        made.heads.train()
        made.heads[smooth.name].requires_grad_(False)
        for part in made.heads.modules():
            part.dropout = 0.0
        learned = float(made(batch, (smooth,))[0].total)
    assert judged == pytest.approx(float(F.cross_entropy(logits, answers, reduction="sum")), rel=1e-5)
    assert learned == pytest.approx(float(spread), rel=1e-4)


def test_rows_behind_those_that_are_written_for_belong_to_others():
    objective = Seq2SeqObjective(8)
    made = learner(objective)
    with torch.no_grad():
        alone = made(collate(beside(), attention=PREFIX_LM), (objective,))[0]
        among = made(collate(beside(more=[[9, 9, 9, 9, 9, 9]])), (objective,))[0]
    assert float(alone.total) == pytest.approx(float(among.total), rel=1e-5)


def test_a_row_without_a_source_sees_all_of_itself():
    whole = behind()
    first = Inputs(
        *(getattr(whole.inputs, name) for name in ("ids", "segment", "document", "position", "rows")),
        whole.inputs.prefix[:1],
    )
    borders = collate(InputsAndTargets(first, ()), attention=PREFIX_LM).tokens.sequences
    assert borders.mask_kind is MaskKind.PREFIX_LM
    assert borders.prefix_lengths_S.tolist() == [5, 6]


def test_the_view_is_checked():
    row = RowCoordinates.of(6, prefix=3)
    question = PrefixLMObjective().prediction_sites(row)
    assert [answer.target for answer in question.sites] == [3, 4, 5]
    assert not find_leaks(PREFIX_LM, row, question.sites)
    assert not find_leaks(CAUSAL, row, question.sites)
    assert find_leaks(FULL, row, question.sites)


def test_the_encoder_writes_with_its_own_head_and_embedding():
    made = learner(PrefixLMObjective())
    head = made.heads["write_after"].lm_head
    assert isinstance(head, LMHead)
    assert head.token is made.network.embed.token
    decoder = learner(Seq2SeqObjective(8)).heads["write"].decoder
    assert decoder.config.depth == TRUNK.depth
    assert len(learner(Seq2SeqObjective(8, depth=1)).heads["write"].decoder.blocks()) == 1

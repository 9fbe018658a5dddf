"""The name table: both directions, tied and stacked tensors, and the refusal of every key that is not named."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_bert import ENCODER, MASKED_LM, PRE_TRAINING, TRUNK, small_model

from unmask.config.model_type import ModelType
from unmask.config.network import Sharing
from unmask.core.errors import InputError
from unmask.interop.hf.layer_names import without_sharing
from unmask.interop.hf.lookup import (
    architectures,
    best_architecture,
    model_map,
    normalized_names,
    parts_of,
    parts_present,
    table_for,
    weight_table_for,
)
from unmask.interop.hf.model_map import HFTask, Parts
from unmask.interop.hf.models.bert import BERT
from unmask.interop.hf.weight_table import IdentityLayer, Renamed, Stacked, Unmatched, WeightTable, first_few
from unmask.nets.model import EncoderWithHeads

TABLE = WeightTable(
    "Example",
    (
        Renamed(("word", "output"), ("embedding", "decoder")),
        Stacked(("qkv",), ("query", "key", "value")),
        Unmatched(own_names=("head",), hf_names=("position_ids",)),
    ),
)


def state():
    word = torch.randn(4, 3)
    return {"word": word, "output": word, "qkv": torch.arange(18.0).view(6, 3), "head": torch.ones(2)}


def test_tied_tensors_are_written_once_and_stacked_ones_apart():
    theirs = TABLE.to_hf(state())
    assert theirs.keys() == {"embedding", "query", "key", "value"}
    assert theirs["key"].tolist() == [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]]


def test_back_again_every_name_of_ours_is_there():
    ours = state()
    back = TABLE.from_hf(TABLE.to_hf(ours))
    assert back.keys() == ours.keys() - {"head"}
    assert all(torch.equal(back[name], ours[name]) for name in back)


@pytest.mark.parametrize("given_as", [("embedding",), ("decoder",), ("embedding", "decoder")])
def test_a_tied_tensor_may_come_under_any_of_its_names(given_as):
    theirs = TABLE.to_hf(state())
    word = theirs.pop("embedding")
    assert torch.equal(TABLE.from_hf(theirs | dict.fromkeys(given_as, word))["output"], word)


def test_tied_names_with_other_numbers_are_refused():
    theirs = TABLE.to_hf(state())
    with pytest.raises(InputError, match="decoder should be the same tensor as embedding"):
        TABLE.from_hf(theirs | {"decoder": theirs["embedding"] + 1})


def test_a_buffer_without_a_counterpart_is_passed_over():
    theirs = TABLE.to_hf(state()) | {"position_ids": torch.arange(3)}
    assert "position_ids" not in TABLE.from_hf(theirs)


def test_unknown_and_missing_keys_are_named():
    with pytest.raises(InputError, match=r"no place for classifier\.weight"):
        TABLE.from_hf(TABLE.to_hf(state()) | {"classifier.weight": torch.ones(1)})
    partly = TABLE.to_hf(state())
    del partly["value"]
    with pytest.raises(InputError, match="needs value"):
        TABLE.from_hf(partly)
    with pytest.raises(InputError, match="no place for extra and it needs qkv"):
        TABLE.to_hf({"word": torch.ones(1), "output": torch.ones(1), "extra": torch.ones(1)})


def test_long_lists_of_names_are_cut():
    assert first_few("abcdefgh", 3) == "a, b, c and 5 more"
    assert first_few("abc", 3) == "a, b, c"


@pytest.mark.parametrize("dialect", ModelType)
@pytest.mark.parametrize("sharing", Sharing)
def test_no_table_names_a_tensor_twice(dialect, sharing):
    for architecture in architectures(dialect):
        check_names(weight_table_for(architecture, replace(TRUNK, depth=4, sharing=sharing)).mappings)


def check_names(entries):
    for side in ("own_names", "hf_names"):
        names = [name for entry in entries for name in getattr(entry, side)]
        assert len(names) == len(set(names))


@given(depth=st.integers(1, 3), tokens=st.booleans(), row=st.booleans())
def test_every_network_survives_its_own_table(depth, tokens, row):
    ours = small_model(vocabulary=9, tokens=tokens, row=row, trunk=replace(TRUNK, depth=depth)).state_dict()
    has = [HFTask.PRE_TRAINING] * row + [HFTask.MASKED_LM] * tokens
    layers = {our: name for one in has for our, name in BERT.heads_by_task[one].layers.items()}
    table = table_for(BERT, Parts(tokens, layers), replace(TRUNK, depth=depth))
    back = table.from_hf(table.to_hf(ours))
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[name], ours[name]) for name in back)


@pytest.mark.parametrize(
    ("tokens", "row", "architecture"),
    [
        (True, True, PRE_TRAINING),
        (True, False, MASKED_LM),
        (False, True, ENCODER),
    ],
)
def test_the_fitting_architecture_finds_its_parts_again(tokens, row, architecture):
    model = small_model(tokens=tokens, row=row)
    assert best_architecture(model) == architecture
    theirs = normalized_names(BERT, weight_table_for(architecture, TRUNK).to_hf(model.state_dict()))
    assert parts_present(BERT, theirs) == parts_of(architecture)


def test_an_architecture_whose_heads_the_network_lacks_is_refused_by_name():
    with pytest.raises(
        InputError, match=r"BertForPreTraining cannot be matched with the network.*row_head\.pool\.weight"
    ):
        weight_table_for(PRE_TRAINING, TRUNK).to_hf(small_model(row=False).state_dict())


def test_old_names_and_missing_prefixes_are_read():
    old = {"embeddings.LayerNorm.gamma": torch.ones(1), "bert.pooler.dense.bias": torch.ones(1), "cls.x.beta": 0}
    assert normalized_names(BERT, old).keys() == {
        "bert.embeddings.LayerNorm.weight",
        "bert.pooler.dense.bias",
        "cls.x.bias",
    }


@pytest.mark.parametrize("dialect", ModelType)
def test_the_parts_of_a_folder_are_found_by_their_names(dialect):
    """Whatever a class is called, its weights say what it has; the class decides where a name has two meanings."""
    grammar, trunk = model_map(dialect), without_sharing(TRUNK)
    for purpose, parts in grammar.heads_by_task.items():
        table = table_for(grammar, parts, trunk)
        names = {name for entry in table.mappings for name in entry.hf_names[:3]}
        assert parts_present(grammar, names, {purpose}) == parts
        if purpose is not HFTask.TOKEN_CLASSIFICATION:
            assert parts_present(grammar, names) == parts


@pytest.mark.parametrize(("groups", "cycle"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_the_groups_of_albert_are_the_layers_that_share(groups, cycle):
    """What the table holds to be one tensor is one tensor in the network, and nothing else is."""
    trunk = replace(TRUNK, depth=8, embedding_width=8, sharing=Sharing.ALL, share_groups=groups, layers_per_group=cycle)
    model = EncoderWithHeads(trunk, 9, 8)
    state = model.state_dict()
    for entry in weight_table_for(next(architectures(ModelType.ALBERT)), trunk).mappings:
        assert len({state[name].data_ptr() for name in entry.own_names if name in state}) <= 1
    theirs = weight_table_for(next(architectures(ModelType.ALBERT)), trunk).to_hf(state)
    assert sum(tensor.numel() for tensor in theirs.values()) == sum(p.numel() for p in model.parameters())


def test_a_projection_of_vectors_that_are_wide_enough_must_leave_them_alone():
    line = IdentityLayer(("weight", "bias"), 3)
    written = line.to_hf({})
    x = torch.randn(5, 3)
    assert torch.equal(x @ written["weight"].T + written["bias"], x)
    assert line.from_hf(written) == {}
    with pytest.raises(InputError, match="bias changes embeddings"):
        line.from_hf(written | {"bias": torch.ones(3)})

"""The name table: both directions, tied and stacked tensors, and the refusal of every key that is not named."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_bert import TRUNK, small_model

from unmask.errors import InputError
from unmask.export.bert import (
    PARTS,
    PRETRAINED_CLASSES,
    Architecture,
    Parts,
    canonical,
    fitting,
    parts_in,
    table_for,
    table_of,
)
from unmask.export.table import Left, NameTable, Same, Stacked, some

TABLE = NameTable(
    "Example",
    (
        Same(("word", "output"), ("embedding", "decoder")),
        Stacked("qkv", ("query", "key", "value")),
        Left(ours=("head",), theirs=("position_ids",)),
    ),
)


def state():
    word = torch.randn(4, 3)
    return {"word": word, "output": word, "qkv": torch.arange(18.0).view(6, 3), "head": torch.ones(2)}


def test_tied_tensors_are_written_once_and_stacked_ones_apart():
    theirs = TABLE.to_theirs(state())
    assert theirs.keys() == {"embedding", "query", "key", "value"}
    assert theirs["key"].tolist() == [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]]


def test_back_again_every_name_of_ours_is_there():
    ours = state()
    back = TABLE.to_ours(TABLE.to_theirs(ours))
    assert back.keys() == ours.keys() - {"head"}
    assert all(torch.equal(back[name], ours[name]) for name in back)


@pytest.mark.parametrize("given_as", [("embedding",), ("decoder",), ("embedding", "decoder")])
def test_a_tied_tensor_may_come_under_any_of_its_names(given_as):
    theirs = TABLE.to_theirs(state())
    word = theirs.pop("embedding")
    assert torch.equal(TABLE.to_ours(theirs | dict.fromkeys(given_as, word))["output"], word)


def test_tied_names_with_other_numbers_are_refused():
    theirs = TABLE.to_theirs(state())
    with pytest.raises(InputError, match="decoder should be the same tensor as embedding"):
        TABLE.to_ours(theirs | {"decoder": theirs["embedding"] + 1})


def test_a_buffer_without_a_counterpart_is_passed_over():
    theirs = TABLE.to_theirs(state()) | {"position_ids": torch.arange(3)}
    assert "position_ids" not in TABLE.to_ours(theirs)


def test_unknown_and_missing_keys_are_named():
    with pytest.raises(InputError, match=r"no place for classifier\.weight"):
        TABLE.to_ours(TABLE.to_theirs(state()) | {"classifier.weight": torch.ones(1)})
    partly = TABLE.to_theirs(state())
    del partly["value"]
    with pytest.raises(InputError, match="needs value"):
        TABLE.to_ours(partly)
    with pytest.raises(InputError, match="no place for extra and it needs qkv"):
        TABLE.to_theirs({"word": torch.ones(1), "output": torch.ones(1), "extra": torch.ones(1)})


def test_long_lists_of_names_are_cut():
    assert some("abcdefgh", 3) == "a, b, c and 5 more"
    assert some("abc", 3) == "a, b, c"


@pytest.mark.parametrize("architecture", Architecture)
def test_the_table_of_bert_names_no_tensor_twice(architecture):
    entries = table_of(architecture, 3).entries
    for side in ("ours", "theirs"):
        names = [name for entry in entries for name in getattr(entry, side)]
        assert len(names) == len(set(names))


@given(depth=st.integers(1, 3), tokens=st.booleans(), row=st.booleans())
def test_every_network_survives_its_own_table(depth, tokens, row):
    ours = small_model(vocabulary=9, tokens=tokens, row=row, trunk=replace(TRUNK, depth=depth)).state_dict()
    table = table_for(Parts(tokens, row, PRETRAINED_CLASSES if row else ""), depth)
    back = table.to_ours(table.to_theirs(ours))
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[name], ours[name]) for name in back)


@pytest.mark.parametrize(
    ("tokens", "row", "architecture"),
    [
        (True, True, Architecture.PRE_TRAINING),
        (True, False, Architecture.MASKED_LM),
        (False, True, Architecture.ENCODER),
    ],
)
def test_the_fitting_architecture_finds_its_parts_again(tokens, row, architecture):
    model = small_model(tokens=tokens, row=row)
    assert fitting(model) is architecture
    theirs = canonical(table_of(architecture, 2).to_theirs(model.state_dict()))
    assert parts_in(theirs) == PARTS[architecture]


def test_an_architecture_whose_heads_the_network_lacks_is_refused_by_name():
    with pytest.raises(InputError, match=r"BertForPreTraining cannot be matched with the network.*row\.pool\.weight"):
        table_of(Architecture.PRE_TRAINING, 2).to_theirs(small_model(row=False).state_dict())


def test_old_names_and_missing_prefixes_are_read():
    old = {"embeddings.LayerNorm.gamma": torch.ones(1), "bert.pooler.dense.bias": torch.ones(1), "cls.x.beta": 0}
    assert canonical(old).keys() == {"bert.embeddings.LayerNorm.weight", "bert.pooler.dense.bias", "cls.x.bias"}

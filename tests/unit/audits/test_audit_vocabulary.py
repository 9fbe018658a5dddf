"""What is said of a corpus whose vocabulary is of another kind than the member's."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer as Pipeline
from tokenizers import models, pre_tokenizers

from unmask.audits.audit import vocabulary_kind, vocabulary_mismatch
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.members import member, members


def content(pipeline):
    return json.loads(pipeline.to_str())


@pytest.mark.parametrize(
    ("spec", "name"),
    [(WordPiece(), "WordPiece"), (ByteBPE(), "ByteBPE"), (Unigram(), "Unigram"), (Characters(), "WordLevel")],
)
def test_every_kind_has_a_name(spec, name):
    assert vocabulary_kind(content(spec.untrained_pipeline())) == name


def test_bytes_are_found_inside_a_sequence_and_a_pipeline_may_have_no_first_step():
    pipeline = Pipeline(models.BPE())
    assert vocabulary_kind(content(pipeline)) == "BPE"
    steps = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel()]
    pipeline.pre_tokenizer = pre_tokenizers.Sequence(steps)
    assert vocabulary_kind(content(pipeline)) == "ByteBPE"


@pytest.mark.parametrize("recipe", members(), ids=lambda recipe: recipe.name)
def test_nothing_is_said_of_a_member_s_own_kind(recipe, tmp_path):
    recipe.tokenizer.untrained_pipeline().save(str(tmp_path / "tokenizer.json"))
    assert vocabulary_mismatch(recipe, tmp_path) == ""


def test_another_kind_is_named_with_the_way_out(tmp_path):
    Unigram().untrained_pipeline().save(str(tmp_path / "tokenizer.json"))
    said = vocabulary_mismatch(member("roberta"), tmp_path)
    assert said == f"{tmp_path} has a Unigram vocabulary; roberta's is ByteBPE (prepare --for roberta)"

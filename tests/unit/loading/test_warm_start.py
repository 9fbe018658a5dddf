"""Going on from a network: its own tokenizer or a longer one, and which heads of a learner it fills."""

import json

import pytest
import torch
from small_bert import ENCODER, POSITIONS, TRUNK, small_model, small_tokenizer, write_folder

from unmask.config.network import TransformerConfig
from unmask.core.errors import InputError
from unmask.data.tokenize.extend import extend_tokenizer
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.hf.load import load_hf_model
from unmask.loading.warm_start import adapt_to_tokenizer, load_matching_weights
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import NSP, RowFact, RowFactObjective
from unmask.train.multi_head_model import MultiHeadModel


def drawn(*objectives, trunk=TRUNK, vocabulary=120):
    learner = MultiHeadModel(trunk, objectives, vocabulary, POSITIONS)
    learner.init_weights(9)
    return learner


def test_the_same_tokenizer_changes_nothing():
    tokenizer, model = small_tokenizer(), small_model()
    again = Tokenizer.parse(tokenizer.pipeline.to_str(pretty=True))
    assert adapt_to_tokenizer(model, tokenizer, again) is model


def test_new_words_begin_as_the_mean_of_their_old_pieces():
    tokenizer = small_tokenizer()
    model = small_model(tokenizer.vocab.size)
    longer = extend_tokenizer(tokenizer, ["天气", "foxes"])
    begun = adapt_to_tokenizer(model, tokenizer, Tokenizer.parse(longer.tokenizer.pipeline.to_str()))
    old, new = model.network.embed.token.weight, begun.network.embed.token.weight
    weather = [tokenizer.pipeline.token_to_id(sign) for sign in "天气"]
    place = longer.tokenizer.pipeline.token_to_id("天气")
    assert torch.equal(new[: len(old)], old)
    assert torch.allclose(new[place], old[weather].mean(0))
    assert len(new) == len(old) + 2


def test_another_vocabulary_is_refused_with_the_id_and_the_way_out():
    tokenizer = small_tokenizer()
    content = tokenizer.content()
    vocab = content["model"]["vocab"]
    vocab["气"], vocab["天"] = vocab["天"], vocab["气"]
    other = Tokenizer.parse(json.dumps(content))
    with pytest.raises(InputError, match=rf"id {min(vocab['天'], vocab['气'])} was .*--tokenizer base/tokenizer\.json"):
        adapt_to_tokenizer(small_model(), tokenizer, other, "base")


def test_a_learner_takes_the_trunk_and_every_head_that_fits():
    model, learner = small_model(), drawn(MLM(), NSP)
    assert load_matching_weights(learner, model) == ()
    state = learner.state_dict()
    for name, tensor in model.state_dict().items():
        part, _, rest = name.partition(".")
        ours = {"network": name, "lm_head": f"heads.mlm.{name}", "row_head": f"heads.next.{name}"}[part]
        assert torch.equal(state[ours], tensor), rest
    assert learner.heads["mlm"].lm_head.token is learner.network.embed.token


def test_what_the_network_does_not_have_stays_drawn_and_is_named():
    learner = drawn(MLM(), NSP, RowFactObjective(RowFact.PAIR))
    kept = learner.heads["pair"].row_head.classify.weight.clone()
    assert load_matching_weights(learner, small_model(row=False)) == ("next", "pair")
    assert load_matching_weights(learner, small_model(tokens=False)) == ("mlm", "pair")
    assert torch.equal(learner.heads["pair"].row_head.classify.weight, kept)


def test_a_bare_encoder_gives_its_pooler_and_leaves_the_classes_drawn(tmp_path):
    model, _ = load_hf_model(write_folder(tmp_path / "bare", small_model(), ENCODER))
    learner = drawn(MLM(), NSP)
    assert load_matching_weights(learner, model) == ("mlm", "next")
    row = learner.heads["next"].row_head
    assert torch.equal(row.pool.weight, model.row_head.pool.weight)
    assert row.classify.weight.any()


def test_training_settings_may_differ_and_the_shape_may_not():
    calm = TransformerConfig(depth=2, width=16, heads=2, ffn_width=32, dropout=0.0)
    assert load_matching_weights(drawn(MLM(), trunk=calm), small_model()) == ()
    with pytest.raises(
        InputError, match=r"encoder is TransformerConfig.*depth=2.*needed is TransformerConfig.*depth=1"
    ):
        load_matching_weights(
            drawn(MLM(), trunk=TransformerConfig(depth=1, width=16, heads=2, ffn_width=32)), small_model()
        )
    with pytest.raises(InputError, match=r"embed\.token\.weight is \(120, 16\), needed is \(121, 16\)"):
        load_matching_weights(drawn(MLM(), vocabulary=121), small_model())

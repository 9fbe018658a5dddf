"""Five dialects: what their settings can say, what they refuse, and which one a network is written in."""

import json
from dataclasses import replace

import pytest
import torch
from small_bert import POSITIONS, TRUNK, small_model, small_tokenizer, write_folder
from small_dialects import SHAPES, tokenizer_for

from unmask.config.model_type import ModelType
from unmask.config.network import Activation, Norm, Sharing
from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.hf.config_json import read_config, write_config
from unmask.interop.hf.load import load_hf_model
from unmask.interop.hf.lookup import architecture_named, architectures, best_architecture, model_type_for
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import UNSHARED, export_hf
from unmask.nets.model import EncoderWithHeads

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def settings(dialect, purpose=HFTask.MASKED_LM, **change):
    model = small_model(trunk=replace(SHAPES[dialect], **change))
    return write_config(model, max(0, model.config.position_offset - 1), Architecture(dialect, purpose))


@pytest.mark.parametrize("dialect", ModelType)
def test_a_trunk_comes_back_from_its_settings(dialect):
    sizes = read_config(settings(dialect))
    assert (sizes.model_type, sizes.network, sizes.max_positions) == (dialect, SHAPES[dialect], POSITIONS)


@pytest.mark.parametrize(
    ("shape", "counts"),
    [
        ({"depth": 12}, (12, 1, 1)),
        ({"depth": 12, "share_groups": 3}, (12, 3, 1)),
        ({"depth": 12, "share_groups": 3, "layers_per_group": 2}, (6, 3, 2)),
        ({"depth": 12, "sharing": Sharing.NONE}, (12, 12, 1)),
    ],
)
def test_albert_counts_layers_in_groups(shape, counts):
    config = settings(ModelType.ALBERT, **shape)
    assert tuple(config[name] for name in ("num_hidden_layers", "num_hidden_groups", "inner_group_num")) == counts
    assert read_config(config).network == replace(SHAPES[ModelType.ALBERT], **shape)


def test_roberta_has_rows_for_positions_that_are_never_used():
    config = settings(ModelType.ROBERTA)
    assert (config["max_position_embeddings"], config["pad_token_id"]) == (POSITIONS + 2, 1)


@pytest.mark.parametrize(
    ("dialect", "purpose", "change", "said"),
    [
        (ModelType.ROBERTA, HFTask.MASKED_LM, {"activation": Activation.RELU}, "LM head with relu"),
        (ModelType.ROBERTA, HFTask.MASKED_LM, {"position_offset": 0}, "begin with number 0.*Roberta has not"),
        (ModelType.ROBERTA, HFTask.ENCODER, {"embedding_width": 8}, "factorised"),
        (ModelType.BERT, HFTask.ENCODER, {"position_offset": 2}, "begin with number 2"),
        (ModelType.ALBERT, HFTask.ENCODER, {"norm": Norm.PRE}, "written as an Albert: it has pre-norm"),
        (ModelType.ALBERT, HFTask.CLASSIFIER, {"pooler_activation": Activation.GELU}, "pooler with gelu"),
        (ModelType.ERNIE, HFTask.ENCODER, {"num_tasks": 3}, "task embeddings"),
        (ModelType.ELECTRA, HFTask.MASKED_LM, {"activation": Activation.GELU_TANH}, "LM head with gelu_tanh"),
        (ModelType.ELECTRA, HFTask.CLASSIFIER, {"pooler_activation": Activation.TANH}, "pooler with tanh"),
    ],
)
def test_what_a_dialect_cannot_say_is_refused(dialect, purpose, change, said):
    with pytest.raises(InputError, match=said):
        settings(dialect, purpose, **change)


def test_roberta_counts_positions_from_its_padding():
    model = small_model(trunk=SHAPES[ModelType.ROBERTA])
    with pytest.raises(InputError, match="should pad with id 1, but pads with id 0"):
        write_config(model, 0, Architecture(ModelType.ROBERTA, HFTask.MASKED_LM))


@pytest.mark.parametrize(
    ("dialect", "change", "said"),
    [
        (ModelType.ERNIE, {"use_task_id": True}, "an Ernie of another kind .use_task_id"),
        (ModelType.ELECTRA, {"summary_type": "mean"}, "summary_type"),
        (ModelType.ELECTRA, {"summary_activation": "tanh"}, "summary_activation"),
        (ModelType.ALBERT, {"num_hidden_layers": 4, "num_hidden_groups": 3}, "4 layers into 3 groups"),
        (ModelType.ALBERT, {"embedding_size": 0}, "embedding_size"),
        (ModelType.ROBERTA, {"pad_token_id": None}, "pad_token_id"),
        (ModelType.ROBERTA, {"max_position_embeddings": 2}, "max_position_embeddings as a whole number above 2"),
        (ModelType.ELECTRA, {"architectures": ["ElectraForCausalLM"]}, "ElectraForCausalLM .*ElectraForMaskedLM"),
        (ModelType.ROBERTA, {"architectures": ["RobertaForPreTraining"]}, "RobertaForPreTraining"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(dialect, change, said):
    with pytest.raises(InputError, match=said):
        read_config(settings(dialect) | change)


def test_a_head_that_bends_in_another_way_is_refused_when_it_is_read(tmp_path):
    """RoBERTa's head for tokens has exact GELU whatever the layers have; ours would have theirs."""
    masked = Architecture(ModelType.ROBERTA, HFTask.MASKED_LM)
    model = small_model(row=False, trunk=SHAPES[ModelType.ROBERTA], vocabulary=300)
    write_folder(tmp_path / "gelu", model, masked)
    assert load_hf_model(tmp_path / "gelu")[0].config == SHAPES[ModelType.ROBERTA]
    write_folder(tmp_path / "new", model, masked, hidden_act="gelu_new")
    with pytest.raises(InputError, match="LM head with gelu_tanh"):
        load_hf_model(tmp_path / "new")


def test_usual_values_are_those_of_the_dialect():
    left_out = ("embedding_size", "hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob")
    config = {name: value for name, value in settings(ModelType.ALBERT).items() if name not in left_out}
    trunk = read_config(config).network
    assert (trunk.embedding_width, trunk.activation, trunk.dropout) == (128, Activation.GELU_TANH, 0.0)


@pytest.mark.parametrize("dialect", ModelType)
def test_the_shape_alone_tells_the_dialect_unless_two_are_alike(dialect):
    found = model_type_for(SHAPES[dialect], ModelType.BERT)
    assert found is (ModelType.BERT if dialect is ModelType.ERNIE else dialect)
    assert model_type_for(SHAPES[dialect], dialect) is dialect


def test_a_shape_that_no_dialect_has_is_left_to_the_one_that_was_wanted():
    assert model_type_for(replace(TRUNK, norm=Norm.PRE), ModelType.ERNIE) is ModelType.ERNIE


@pytest.mark.parametrize("dialect", ModelType)
def test_classes_are_found_by_their_names(dialect):
    for architecture in architectures(dialect):
        assert architecture_named(architecture.name) == architecture


def test_the_fitting_class_leaves_as_little_behind_as_can_be():
    both = small_model()
    judge = EncoderWithHeads(
        SHAPES[ModelType.ELECTRA], 9, 8, has_lm_head=False, has_row_head=False, has_discriminator_head=True
    )
    assert str(best_architecture(both, ModelType.ERNIE)) == "ErnieForPreTraining"
    assert str(best_architecture(both, ModelType.ROBERTA)) == "RobertaForMaskedLM"
    assert str(best_architecture(judge, ModelType.ELECTRA)) == "ElectraForPreTraining"
    assert best_architecture(judge, ModelType.ELECTRA).task is HFTask.DISCRIMINATOR


@pytest.mark.parametrize("embedding", [0, 8])
def test_a_bert_whose_layers_share_is_written_out_or_as_what_can_say_it(embedding, tmp_path):
    """Narrow embeddings are ALBERT's, and so is sharing; a BERT has a copy of every layer."""
    model = small_model(trunk=replace(TRUNK, sharing=Sharing.ALL, embedding_width=embedding))
    dialect = model_type_for(model.config, ModelType.BERT)
    proof = export_hf(model, tokenizer_for(ModelType.BERT), tmp_path / "out", best_architecture(model, dialect))
    back, _ = load_hf_model(tmp_path / "out")
    assert dialect is (ModelType.ALBERT if embedding else ModelType.BERT)
    assert proof.notes == (() if embedding else (UNSHARED.format("BERT"),))
    assert back.config.sharing is (Sharing.ALL if embedding else Sharing.NONE)


def test_albert_with_wide_embeddings_projects_nothing(tmp_path):
    model = small_model(trunk=replace(SHAPES[ModelType.ALBERT], embedding_width=0))
    proof = export_hf(
        model, tokenizer_for(ModelType.BERT), tmp_path / "out", best_architecture(model, ModelType.ALBERT)
    )
    assert max(proof.max_hidden_difference, proof.max_logits_difference) < 1e-5
    assert load_hf_model(tmp_path / "out")[0].config == model.config


def test_the_card_counts_what_can_be_used(tmp_path):
    model = small_model(row=False, trunk=SHAPES[ModelType.ROBERTA], vocabulary=300)
    export_hf(model, tokenizer_for(ModelType.ROBERTA), tmp_path / "out", best_architecture(model, ModelType.ROBERTA))
    card = (tmp_path / "out" / "README.md").read_text()
    assert (
        f"A `RobertaForMaskedLM` with 2 layers, width 16, 2 heads, 300 vocabulary entries, rows of up to {POSITIONS}"
        in card
    )
    assert json.loads((tmp_path / "out" / "config.json").read_text())["max_position_embeddings"] == POSITIONS + 2


@pytest.mark.parametrize(("rules", "lower", "keep"), [("Lowercase", True, True), ("NFKD StripAccents", False, False)])
def test_a_unigram_with_the_rules_of_albert_goes_under_its_class(rules, lower, keep, tmp_path):
    """Ours normalises in another way, so it goes under the class that takes a pipeline as it stands."""
    content = tokenizer_for(ModelType.ALBERT).content()
    quotes = [{"type": "Replace", "pattern": {"String": old}, "content": '"'} for old in ("``", "''")]
    content["normalizer"] = {"type": "Sequence", "normalizers": [*quotes, *({"type": one} for one in rules.split())]}
    model = small_model(trunk=SHAPES[ModelType.ALBERT])
    for name, tokenizer in (
        ("theirs", Tokenizer.parse(json.dumps(content))),
        ("ours", tokenizer_for(ModelType.ALBERT)),
    ):
        export_hf(
            model,
            tokenizer,
            tmp_path / name,
            best_architecture(model, ModelType.ALBERT),
            lines=("``Naïve'' Fox ％", "天气"),
        )
    said = [json.loads((tmp_path / name / "tokenizer_config.json").read_text()) for name in ("theirs", "ours")]
    assert [one["tokenizer_class"] for one in said] == ["AlbertTokenizerFast", "PreTrainedTokenizerFast"]
    assert (said[0]["do_lower_case"], said[0]["keep_accents"]) == (lower, keep)


def test_a_roberta_on_another_vocabulary_is_written_with_its_positions_moved(tmp_path):
    model = small_model(trunk=SHAPES[ModelType.ROBERTA], row=False)
    proof = export_hf(model, small_tokenizer(), tmp_path / "out", Architecture(ModelType.ROBERTA, HFTask.MASKED_LM))
    assert "moved to begin with number 1" in " ".join(proof.notes)
    back, _ = load_hf_model(tmp_path / "out")
    assert back.config.position_offset == 1
    assert model.config.position_offset == 2  # the network itself stays as it was
    assert torch.equal(back.network.embed.position.weight[1:], model.network.embed.position.weight[2:])

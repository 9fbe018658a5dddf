"""Import: folders of several kinds, and a sentence for each that cannot be read."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_bert import ENCODER, MASKED_LM, PRE_TRAINING, small_model, small_tokenizer, write_folder

from unmask.core.errors import InputError
from unmask.interop.hf.load import load_hf_model


def test_the_heads_are_those_that_the_weights_hold(tmp_path):
    model, _ = load_hf_model(write_folder(tmp_path, small_model(), MASKED_LM))
    assert model.lm_head is not None
    assert model.row_head is None
    assert not model.training


def test_a_bare_encoder_without_pooler_has_no_heads(tmp_path):
    write_folder(tmp_path, small_model(), ENCODER)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({n: t for n, t in weights.items() if not n.startswith("pooler")}, tmp_path / "model.safetensors")
    model, _ = load_hf_model(tmp_path)
    assert model.lm_head is None
    assert model.row_head is None


def test_half_precision_is_read_as_float32(tmp_path):
    write_folder(tmp_path, small_model(), PRE_TRAINING)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({name: tensor.half() for name, tensor in weights.items()}, tmp_path / "model.safetensors")
    model, _ = load_hf_model(tmp_path)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    known = weights["bert.embeddings.position_embeddings.weight"].half().float()
    assert torch.equal(model.network.embed.position.weight, known)


def test_the_output_matrix_is_the_embedding_itself(tmp_path):
    model, _ = load_hf_model(write_folder(tmp_path, small_model(), MASKED_LM))
    assert model.lm_head.token is model.network.embed.token


def test_a_list_of_entries_becomes_the_same_tokenizer(tmp_path):
    write_folder(tmp_path, small_model(), MASKED_LM)
    tokenizer = small_tokenizer()
    vocab = tokenizer.pipeline.get_vocab()
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.get)) + "\n", encoding="utf-8")
    _, read = load_hf_model(tmp_path)
    assert read.digest == tokenizer.digest
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    _, cased = load_hf_model(tmp_path)
    assert cased.content()["normalizer"]["lowercase"] is False
    assert cased.content()["normalizer"]["strip_accents"] is False


def refused(folder, said):
    with pytest.raises(InputError, match=said):
        load_hf_model(folder)


def test_weights_that_could_run_code_are_never_read(tmp_path):
    write_folder(tmp_path, small_model(), MASKED_LM)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    refused(tmp_path, "pickle")


def test_what_is_not_there_is_named(tmp_path):
    refused(tmp_path / "nowhere", "no config.json")
    write_folder(tmp_path, small_model(), MASKED_LM)
    (tmp_path / "tokenizer.json").unlink()
    refused(tmp_path, "neither tokenizer.json nor vocab.txt")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\nword\n")
    refused(tmp_path, r"has no \[CLS\], \[SEP\], \[MASK\]")
    (tmp_path / "model.safetensors").unlink()
    refused(tmp_path, "no model.safetensors")


def test_damaged_files_are_named(tmp_path):
    write_folder(tmp_path, small_model(), MASKED_LM)
    content = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(content[: len(content) // 2])
    refused(tmp_path, "model.safetensors cannot be read")
    (tmp_path / "config.json").write_text("{")
    refused(tmp_path, "cannot be read \\(")
    (tmp_path / "config.json").write_text("[1]")
    refused(tmp_path, "should hold a JSON object")


def test_an_index_may_not_point_elsewhere(tmp_path):
    write_folder(tmp_path, small_model(), MASKED_LM)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../a.safetensors"}}))
    refused(tmp_path, "points outside")


def test_weights_that_do_not_fit_the_settings_are_refused(tmp_path):
    refused(write_folder(tmp_path, small_model(), MASKED_LM, vocab_size=121), r"\(121, 16\)")
    refused(write_folder(tmp_path, small_model(), MASKED_LM, num_hidden_layers=3), "encoder.layer.2")
    refused(write_folder(tmp_path, small_model(), MASKED_LM, num_hidden_layers=1), "encoder.layer.1")


def test_a_head_that_is_unknown_here_is_named(tmp_path):
    write_folder(tmp_path, small_model(), ENCODER)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(weights | {"lm_head.weight": torch.ones(2, 16)}, tmp_path / "model.safetensors")
    refused(tmp_path, "lm_head.weight")


def test_a_tokenizer_with_more_entries_than_rows_is_refused(tmp_path):
    refused(write_folder(tmp_path, small_model(vocabulary=20), MASKED_LM), "rows for 20 only")

"""`model.onnx`: the same numbers from a runtime without torch, for any number of rows of any length."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_bert import ENCODER, MASKED_LM, POSITIONS, PRE_TRAINING, TRUNK, small_model, small_tokenizer
from small_dialects import SHAPES, tokenizer_for
from small_tuned import code_on_card, small_tuned, tuned_folder

from unmask.config.model_type import ModelType
from unmask.config.network import Activation
from unmask.core.errors import InputError, UserError
from unmask.finetuning.data.tagging.schemes import TagScheme
from unmask.finetuning.export.hf import export_finetuned
from unmask.finetuning.tasks.classification import ClassificationTask
from unmask.finetuning.tasks.multiple_choice import MultipleChoiceTask
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.finetuning.tasks.tagging import TaggingTask
from unmask.inference.pack_texts import pack
from unmask.interop import extra_format
from unmask.interop.hf.lookup import architectures
from unmask.interop.hf.model_map import DOWNSTREAM_TASKS
from unmask.interop.hf.save import export_hf
from unmask.interop.onnx import export as export_module
from unmask.interop.onnx.export import OnnxFormat
from unmask.nets.encoder import init_weights
from unmask.nets.model import EncoderWithHeads

onnxruntime = pytest.importorskip("onnxruntime", reason="needs: pip install 'unmask[onnx]'")
onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("onnx") / "out", small_model().eval()
    proof = export_hf(model, small_tokenizer(), folder, ENCODER, extras=(OnnxFormat(),))
    return folder, model, proof


def test_its_inputs_and_outputs_have_the_usual_names(encoder):
    session = onnxruntime.InferenceSession(encoder[0] / "model.onnx")
    shapes = {one.name: one.shape for one in session.get_inputs()}
    assert shapes == {name: ["batch", "length"] for name in ("input_ids", "attention_mask", "token_type_ids")}
    assert [one.name for one in session.get_outputs()] == ["last_hidden_state", "pooler_output"]
    assert [path.name for path in encoder[0].iterdir() if "onnx" in path.name] == ["model.onnx"]  # one file, no other


@pytest.mark.parametrize("lengths", [(1,), (POSITIONS,), (3, 17, 8), (2,) * 40])
def test_rows_of_every_length_give_our_states(encoder, lengths):
    folder, model, proof = encoder
    assert 0 < proof.format_checks[0].max_difference < 1e-4
    numbers = np.random.default_rng(sum(lengths))
    rows = [numbers.integers(5, 100, length).tolist() for length in lengths]
    ids, mask = (np.zeros((len(rows), max(lengths)), np.int64) for _ in range(2))
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)] = row, 1
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    said = session.run(
        ["last_hidden_state"], {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    )
    with torch.no_grad():
        ours_TD = model.network(pack(rows)).last_TD.numpy()
    np.testing.assert_allclose(said[0][mask.astype(bool)], ours_TD, atol=1e-5)


def test_the_code_on_the_card_works(encoder, capsys):
    exec(code_on_card(encoder[0], 1), {})
    assert "pooler_output" in capsys.readouterr().out
    assert f"onnxruntime {onnxruntime.__version__} and unmask agree" in (encoder[0] / "README.md").read_text()


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        (MASKED_LM, ["last_hidden_state", "logits"]),
        (PRE_TRAINING, ["last_hidden_state", "prediction_logits", "seq_relationship_logits"]),
    ],
)
def test_a_pretrained_network_gives_states_and_logits(architecture, names, tmp_path):
    proof = export_hf(small_model(), small_tokenizer(), tmp_path / "out", architecture, extras=(OnnxFormat(),))
    assert proof.format_checks[0].max_difference < 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    assert [one.name for one in session.get_outputs()] == names


@pytest.mark.parametrize("dialect", [dialect for dialect in ModelType if dialect is not ModelType.BERT])
def test_every_pretrained_class_of_every_dialect_has_a_graph(dialect, tmp_path):
    tokenizer, trunk = tokenizer_for(dialect), SHAPES[dialect]
    model = EncoderWithHeads(
        trunk, tokenizer.vocab.size, POSITIONS, has_discriminator_head=dialect is ModelType.ELECTRA
    )
    init_weights(model, 0.1, torch.Generator().manual_seed(6))
    for architecture in architectures(dialect):
        if architecture.task in DOWNSTREAM_TASKS:
            continue
        folder = tmp_path / architecture.task
        proof = export_hf(model, tokenizer, folder, architecture, extras=(OnnxFormat(),))
        assert 0 < proof.format_checks[0].max_difference < 1e-5
        graph = onnx.load(folder / "model.onnx").graph
        held = [one.name for one in graph.initializer if not one.name.startswith("constant_")]
        assert set(held) <= dict(model.named_parameters()).keys()  # what layers share is there once


@pytest.mark.parametrize(
    "output",
    [
        ClassificationTask(("a", "b", "c")),
        MultipleChoiceTask(),
        TaggingTask(("B-X", "I-X", "O"), TagScheme.BIO),
        SpanQATask(),
    ],
    ids=str,
)
def test_a_tuned_network_answers_from_the_graph(output, tmp_path, capsys):
    tuned_folder(tmp_path / "tuned", small_tuned(output))
    _, proof = export_finetuned(tmp_path / "tuned", tmp_path / "out", extras=(OnnxFormat(),))
    assert proof.format_checks[0].max_difference < 1e-4
    exec(code_on_card(tmp_path / "out", 1), {})
    assert "logits" in capsys.readouterr().out


@pytest.mark.parametrize("activation", [Activation.GELU_TANH, Activation.RELU])
def test_every_activation_of_bert_is_known(activation, tmp_path):
    model = small_model(trunk=replace(TRUNK, activation=activation, num_segments=1, norm_eps=1e-5))
    proof = export_hf(model, small_tokenizer(), tmp_path / "out", PRE_TRAINING, extras=(OnnxFormat(),))
    assert proof.format_checks[0].max_difference < 1e-5


def test_the_file_is_valid_and_holds_every_weight_once(encoder):
    onnx.checker.check_model(str(encoder[0] / "model.onnx"), full_check=True)
    held = {one.name: one.dims for one in onnx.load(encoder[0] / "model.onnx").graph.initializer}
    ours = dict(encoder[1].named_parameters())
    expected = {name for name in ours if name.startswith(("network.", "row_head.pool."))}
    assert {name for name in held if not name.startswith("constant_")} == expected
    assert all(list(ours[name].shape) == list(held[name]) for name in expected)


def test_a_network_that_is_too_large_for_one_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(export_module, "_MAX_BYTES", 1000)
    with pytest.raises(InputError, match="without --onnx"):
        export_hf(small_model(), small_tokenizer(), tmp_path / "out", ENCODER, extras=(OnnxFormat(),))
    assert not list(tmp_path.iterdir())


def test_other_numbers_refuse_the_export_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(extra_format, "TOLERANCE", 0.0)
    with pytest.raises(InputError, match="gives other numbers"):
        export_hf(small_model(), small_tokenizer(), tmp_path / "out", ENCODER, extras=(OnnxFormat(),))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["onnxruntime", "onnx"])
def test_without_the_libraries_nothing_is_written(missing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=rf"{missing} is not installed.*pip install 'unmask\[onnx\]'"):
        export_hf(small_model(), small_tokenizer(), tmp_path / "out", ENCODER, extras=(OnnxFormat(),))
    assert not list(tmp_path.iterdir())

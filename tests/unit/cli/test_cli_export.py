"""`export`: from a run to a folder that transformers loads, in every form."""

import pytest
import transformers
from small_sources import TEXTS, run, write_run

from unmask.config.network import Sharing, TransformerConfig
from unmask.core.errors import InputError
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.finetuning.artifact import BaseModelRef, FineTunedNetwork, save_finetuned
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE
from unmask.finetuning.data.tagging.schemes import TagScheme
from unmask.finetuning.tasks.tagging import TaggingTask
from unmask.train.multi_head_model import MultiHeadModel

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("export") / "r1")


def test_everything_is_written_unless_something_else_is_said(source, tmp_path):
    result = run("export", source, tmp_path / "out")
    assert result.exit_code == 0
    said = result.output.replace("\n", " ")
    assert "a BertForPreTraining with its tokenizer" in said
    assert f"checked: transformers {transformers.__version__} and unmask agree" in said
    card = (tmp_path / "out" / "README.md").read_text()
    assert "bert, 10 steps" in card
    assert "tokens: 345" in card


@pytest.mark.parametrize(("form", "kind"), [("masked-lm", "BertForMaskedLM"), ("encoder", "BertModel")])
def test_a_smaller_form_can_be_asked_for(source, tmp_path, form, kind):
    result = run("export", source, tmp_path / "out", "--as", form, "--checkpoint", "best")
    assert result.exit_code == 0
    assert transformers.AutoConfig.from_pretrained(tmp_path / "out").architectures == [kind]
    assert "bert, 5 steps" in (tmp_path / "out" / "README.md").read_text()


def test_an_export_can_be_exported_again(source, tmp_path):
    run("export", source, tmp_path / "one")
    assert run("export", tmp_path / "one", tmp_path / "two").exit_code == 0
    one, two = (tmp_path / name / "model.safetensors" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    ("form", "said"), [("pretraining", "needs a head for rows"), ("classifier", "unmask finetune")]
)
def test_a_form_that_the_network_cannot_have_is_told(tmp_path, form, said):
    source = write_run(tmp_path / "r1", "roberta")
    result = run("export", source, tmp_path / "out", "--as", form)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        ((), "ElectraForPreTraining", "is exported by --as generator"),
        (("--as", "discriminator"), "ElectraForPreTraining", "an ElectraForPreTraining"),
        (("--as", "generator"), "ElectraForMaskedLM", "an ElectraForMaskedLM"),
        (("--as", "encoder"), "ElectraModel", "an ElectraModel"),
    ],
)
def test_both_networks_of_a_run_can_be_had(tmp_path, words, kind, said):
    result = run("export", write_run(tmp_path / "r1", "electra"), tmp_path / "out", *words)
    assert result.exit_code == 0, result.exception
    assert said in " ".join(result.output.split())
    assert transformers.AutoConfig.from_pretrained(tmp_path / "out").architectures == [kind]


@pytest.mark.parametrize(
    ("member", "form", "said"),
    [
        ("electra", "masked-lm", "Its generator has one: --as generator"),
        ("electra", "pretraining", "Electra has no class for that"),
        ("bert", "generator", "BERT has no class for that. This network can be written as a BertForPreTraining"),
        ("bert", "discriminator", "BERT has no class for that"),
    ],
)
def test_what_one_family_has_another_has_not(tmp_path, member, form, said):
    result = run("export", write_run(tmp_path / "r1", member), tmp_path / "out", "--as", form)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)


def test_layers_that_cannot_share_there_are_told(tmp_path):
    source = write_run(tmp_path / "r1", sharing=Sharing.ATTENTION)
    result = run("export", source, tmp_path / "out")
    assert result.exit_code == 0
    assert "note: " in result.output
    assert "Every layer was written with its own copy" in (tmp_path / "out" / "README.md").read_text()


def test_vectors_for_sentence_transformers_and_a_graph(source, tmp_path):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("onnxruntime")
    result = run("export", source, tmp_path / "out", "--as", "sentence", "--pooling", "first", "--normalize", "--onnx")
    assert result.exit_code == 0
    said = " ".join(result.output.split())
    assert "checked: sentence-transformers" in said
    assert "checked: onnxruntime" in said
    assert (tmp_path / "out" / "model.onnx").is_file()
    assert "Normalize" in (tmp_path / "out" / "modules.json").read_text()


def test_a_network_without_a_head_for_rows_can_be_an_encoder(tmp_path):
    result = run("export", write_run(tmp_path / "r1", "roberta"), tmp_path / "out", "--as", "encoder")
    assert result.exit_code == 0
    assert "trained without a pooler" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("words", [("--pooling", "first"), ("--normalize",), ("--as", "encoder", "--pooling", "mean")])
def test_an_option_of_no_use_is_told(source, tmp_path, words):
    result = run("export", source, tmp_path / "out", *words)
    assert isinstance(result.exception, InputError)
    assert "go with --as sentence" in str(result.exception)


@pytest.mark.parametrize(
    ("form", "said"), [("masked-lm", "with the head of that task"), ("classifier", "leave --as out")]
)
def test_a_tuned_network_is_what_answers_its_task(tmp_path, form, said):
    tagger = small_tagger(tmp_path / "tuned")
    result = run("export", tagger, tmp_path / "out", "--as", form)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
    assert run("export", tagger, tmp_path / "out").exit_code == 0
    assert transformers.AutoConfig.from_pretrained(tmp_path / "out").architectures == ["BertForTokenClassification"]


def small_tagger(folder):
    output, tokenizer = (
        TaggingTask(("B-X", "I-X", "O"), TagScheme.BIO),
        train_tokenizer(WordPiece(120, min_count=1), TEXTS),
    )
    learner = MultiHeadModel(
        TransformerConfig(depth=1, width=16, heads=2, ffn_width=32), (output.objective,), tokenizer.vocab.size, 24
    )
    learner.init_weights(0)
    folder.mkdir()
    save_finetuned(FineTunedNetwork(output, NO_COLUMN_CHOICE, 24, learner, tokenizer), folder, BaseModelRef("r1"), {})
    return folder

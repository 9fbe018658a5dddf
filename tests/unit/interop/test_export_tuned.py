"""A tuned network as one of BERT's classes for tasks: which class, which names, and what is refused."""

import json
from dataclasses import replace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from small_bert import CHOOSER, CLASSIFIER, POSITIONS, READER, TAGGER
from small_tuned import ROWS, small_tuned, tuned_folder

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError, UserError
from unmask.finetuning.data.tagging.schemes import TagScheme
from unmask.finetuning.export.hf import export_finetuned, open_finetuned
from unmask.finetuning.export.hf_architecture import model_for_export
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.frozen import FrozenEncoder, ScalarMixing
from unmask.finetuning.methods.lora import Lora
from unmask.finetuning.methods.unfreezing import NormOnly, TopLayers
from unmask.finetuning.tasks.classification import ClassificationTask
from unmask.finetuning.tasks.generation import GenerationTask
from unmask.finetuning.tasks.multilabel import MultiLabelTask
from unmask.finetuning.tasks.multiple_choice import MultipleChoiceTask
from unmask.finetuning.tasks.ranking import RankingTask
from unmask.finetuning.tasks.regression import RegressionTask
from unmask.finetuning.tasks.san_pair import SANPairTask
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.finetuning.tasks.tagging import TaggingTask
from unmask.interop.hf.load import load_hf_model
from unmask.interop.hf.save import to_hf_state_dict
from unmask.loading.open_model import open_model

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
TAGS = ("B-LOC", "I-LOC", "O")
EVERY = {
    ClassificationTask(("中立", "反对", "同意")): (CLASSIFIER, "single_label_classification"),
    MultiLabelTask(("a", "b", "c")): (CLASSIFIER, "multi_label_classification"),
    RegressionTask(mean=2.0, std=3.0): (CLASSIFIER, "regression"),
    RankingTask(): (CLASSIFIER, "regression"),
    TaggingTask(TAGS, TagScheme.BIO): (TAGGER, None),
    SpanQATask(max_answer_tokens=9): (READER, None),
    MultipleChoiceTask(): (CHOOSER, None),
}


@pytest.mark.parametrize("output", EVERY, ids=str)
def test_every_kind_of_task_has_its_class(output, tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(output))
    architecture, proof = export_finetuned(tmp_path / "tuned", tmp_path / "out")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "out")
    assert (architecture, config.problem_type) == EVERY[output]
    assert config.architectures == [architecture.name]
    assert 0 < max(proof.max_hidden_difference, proof.max_logits_difference) < 1e-5
    labels = getattr(output, "labels", ())
    if labels:
        assert config.id2label == dict(enumerate(labels))
        assert config.label2id == {label: number for number, label in enumerate(labels)}


@pytest.mark.parametrize("output", EVERY, ids=str)
def test_import_is_the_same_table_backwards(output, tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(output))
    architecture, _ = export_finetuned(tmp_path / "tuned", tmp_path / "out")
    back, _ = load_hf_model(tmp_path / "out")
    before = model_for_export(open_finetuned(tmp_path / "tuned")).state_dict()
    assert back.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in back.state_dict().items())
    written, again = load_file(tmp_path / "out" / "model.safetensors"), to_hf_state_dict(back, architecture)
    assert written.keys() == again.keys()
    pooler = {name for name in written if "pooler" in name}
    assert bool(pooler) == (architecture in (CLASSIFIER, CHOOSER))


def test_an_old_tagger_with_a_pooler_that_it_does_not_use_is_read(tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(TaggingTask(TAGS, TagScheme.BIO)))
    export_finetuned(tmp_path / "tuned", tmp_path / "out")
    state = load_file(tmp_path / "out" / "model.safetensors")
    width = state["classifier.weight"].shape[1]
    state |= {"bert.pooler.dense.weight": torch.ones(width, width), "bert.pooler.dense.bias": torch.ones(width)}
    save_file(state, tmp_path / "out" / "model.safetensors")
    back, _ = load_hf_model(tmp_path / "out")
    assert torch.equal(back.token_classifier.weight, state["classifier.weight"])
    assert back.row_head.pool.weight.all()


def test_the_card_tells_the_task_and_how_to_read_its_answers(tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(RankingTask()))
    export_finetuned(tmp_path / "tuned", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    for said in (
        "text-classification",
        "tuned from r1 for ranking; accuracy 0.875",
        "rows learned: 90",
        "This is ranking",
    ):
        assert said in card
    assert f"at most {POSITIONS} tokens" in card


def test_rows_are_cut_where_they_were_cut_in_training(tmp_path):
    tuned_folder(tmp_path / "tuned", replace(small_tuned(ClassificationTask(("a", "b"))), max_length=12))
    export_finetuned(tmp_path / "tuned", tmp_path / "out")
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert len(words("今天天气真好，" * 9, truncation=True)["input_ids"]) == 12


@pytest.mark.parametrize("policy", [FrozenEncoder(), NormOnly(), TopLayers(1), Lora(rank=2)], ids=str)
def test_what_ends_in_the_plain_shape_can_be_exported(policy, tmp_path):
    tuned = small_tuned(ClassificationTask(("a", "b")), policy)
    ours = tuned_folder(tmp_path / "tuned", tuned, ROWS)
    export_finetuned(tmp_path / "tuned", tmp_path / "out")
    answer = transformers.pipeline("text-classification", str(tmp_path / "out"), top_k=None)
    for question, mine in zip(ROWS, ours, strict=True):
        likely = {one["label"]: one["score"] for one in answer([question.texts[0]])[0]}
        assert list(mine.probabilities) == pytest.approx([likely["a"], likely["b"]], abs=1e-5)


def test_updates_are_added_to_a_copy(tmp_path):
    tuned = small_tuned(ClassificationTask(("a", "b")), Lora(rank=2))
    before = dict(tuned.learner.named_parameters()).keys()
    model = model_for_export(tuned)
    assert dict(tuned.learner.named_parameters()).keys() == before
    assert not any("lora" in name for name in model.state_dict())


@pytest.mark.parametrize(
    ("output", "policy", "said"),
    [
        (ClassificationTask(("a", "b")), Adapter(4), r"adapters inside its blocks.*--method lora"),
        (ClassificationTask(("a", "b")), ScalarMixing(), r"scalar mix of all layers.*--method frozen"),
        (TaggingTask(TAGS, TagScheme.BIO, crf=True), FrozenEncoder(), r"with a CRF.*without --crf"),
        (SANPairTask(("a", "b")), FrozenEncoder(), r"answer module of SAN.*--task-type classification"),
        (GenerationTask(), FrozenEncoder(), "fine-tuned for generation"),
        (ClassificationTask(("a", "b"), pooling=Pooling.MEAN), FrozenEncoder(), "--pooling first"),
        (MultipleChoiceTask(pooling=Pooling.ATTENTION), FrozenEncoder(), "--pooling first"),
    ],
    ids=str,
)
def test_what_no_class_can_say_is_refused_with_a_way_out(output, policy, said, tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(output, policy))
    with pytest.raises(UserError, match=said):
        export_finetuned(tmp_path / "tuned", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "output",
    [ClassificationTask(("a", "b")), TaggingTask(TAGS, TagScheme.BIO), SpanQATask(), MultipleChoiceTask()],
    ids=str,
)
def test_neither_form_of_a_tuned_network_is_taken_for_a_pretrained_one(output, tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(output))
    export_finetuned(tmp_path / "tuned", tmp_path / "out")
    for name in ("tuned", "out"):
        with pytest.raises(InputError, match="fine-tuned for a task"):
            open_model(tmp_path / name)


def test_a_damaged_network_is_not_exported(tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(ClassificationTask(("a", "b"))))
    said = json.loads((tmp_path / "tuned" / "task.json").read_text())
    said["files"]["model.safetensors"] = "0" * 32
    (tmp_path / "tuned" / "task.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="is not what was written"):
        export_finetuned(tmp_path / "tuned", tmp_path / "out")
    assert not (tmp_path / "out").exists()

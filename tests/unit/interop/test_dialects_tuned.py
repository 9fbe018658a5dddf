"""Tuned networks of every dialect: their class, and the same answers in transformers and from a graph."""

import json

import pytest
import transformers
from small_bert import small_model, write_folder
from small_dialects import SHAPES, tokenizer_for
from small_tuned import PAIR_ROWS, PAIRS, code_on_card, small_tuned, tuned_folder

from unmask.config.model_type import ModelType
from unmask.finetuning.data.tagging.schemes import TagScheme
from unmask.finetuning.export.hf import export_finetuned
from unmask.finetuning.methods.protocol import FullFineTuning
from unmask.finetuning.tasks.classification import ClassificationTask
from unmask.finetuning.tasks.multiple_choice import MultipleChoiceTask
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.finetuning.tasks.tagging import TaggingTask
from unmask.interop.hf.load import load_hf_model
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import export_hf
from unmask.interop.onnx.export import OnnxFormat

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
OUTPUTS = {
    HFTask.CLASSIFIER: ClassificationTask(("a", "b", "c")),
    HFTask.TOKEN_CLASSIFICATION: TaggingTask(("B-X", "I-X", "O"), TagScheme.BIO),
    HFTask.QUESTION_ANSWERING: SpanQATask(max_answer_tokens=9),
    HFTask.MULTIPLE_CHOICE: MultipleChoiceTask(),
}
OTHERS = [dialect for dialect in ModelType if dialect is not ModelType.BERT]


def root_of(folder, dialect):
    """The folder of a network that something was tuned from; only its settings matter here."""
    return write_folder(folder, small_model(300, row=False, trunk=SHAPES[dialect]), masked(dialect))


def masked(dialect):
    return Architecture(dialect, HFTask.MASKED_LM)


@pytest.mark.parametrize("dialect", OTHERS)
@pytest.mark.parametrize("purpose", OUTPUTS)
def test_every_kind_of_task_has_its_class(dialect, purpose, tmp_path):
    pytest.importorskip("onnxruntime")
    root_of(tmp_path / "root", dialect)
    tuned_folder(tmp_path / "tuned", small_tuned(OUTPUTS[purpose], FullFineTuning(), dialect), root="../root")
    architecture, proof = export_finetuned(tmp_path / "tuned", tmp_path / "out", extras=(OnnxFormat(),))
    assert architecture == Architecture(dialect, purpose)
    assert max(proof.max_hidden_difference, proof.max_logits_difference, proof.format_checks[0].max_difference) < 1e-5
    assert proof.max_logits_difference > 0
    assert load_hf_model(tmp_path / "out")[0].config == SHAPES[dialect]


@pytest.mark.parametrize("dialect", OTHERS)
def test_pairs_are_answered_alike(dialect, tmp_path):
    """One token stands between two texts here, whatever the tokenizer of the family does; the export says so."""
    root_of(tmp_path / "root", dialect)
    tuned = small_tuned(OUTPUTS[HFTask.CLASSIFIER], FullFineTuning(), dialect)
    ours = tuned_folder(tmp_path / "tuned", tuned, PAIR_ROWS, root="../root")
    export_finetuned(tmp_path / "tuned", tmp_path / "out")
    left: dict[str, object] = {}
    exec(code_on_card(tmp_path / "out"), left)
    for (a, b), mine in zip(PAIRS, ours, strict=True):
        theirs = {one["label"]: one["score"] for one in left["answer"]({"text": a, "text_pair": b})}
        assert [theirs[label] for label in ("a", "b", "c")] == pytest.approx(mine.probabilities, abs=1e-5)


def test_a_tuned_network_whose_root_is_gone_is_known_by_its_shape(tmp_path):
    for dialect in OTHERS:
        tuned_folder(
            tmp_path / f"tuned-{dialect}",
            small_tuned(OUTPUTS[HFTask.TOKEN_CLASSIFICATION], FullFineTuning(), dialect),
            root="../gone",
        )
        architecture, _ = export_finetuned(tmp_path / f"tuned-{dialect}", tmp_path / dialect.value)
        assert architecture.model_type is (ModelType.BERT if dialect is ModelType.ERNIE else dialect)


def test_a_tokenizer_of_bytes_has_the_name_of_its_family_before_it_is_tuned_and_not_after(tmp_path):
    bytes_ = tokenizer_for(ModelType.ROBERTA)
    model = small_model(300, row=False, trunk=SHAPES[ModelType.ROBERTA])
    export_hf(model, bytes_, tmp_path / "masked", masked(ModelType.ROBERTA))
    tuned_folder(
        tmp_path / "tuned", small_tuned(OUTPUTS[HFTask.QUESTION_ANSWERING], FullFineTuning(), ModelType.ROBERTA)
    )
    export_finetuned(tmp_path / "tuned", tmp_path / "reader")
    names = [
        json.loads((tmp_path / one / "tokenizer_config.json").read_text())["tokenizer_class"]
        for one in ("masked", "reader")
    ]
    assert names == ["RobertaTokenizerFast", "PreTrainedTokenizerFast"]
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path / "masked")
    shown = reader("The quick <mask> jumps")["input_ids"]
    assert shown == bytes_.pipeline.encode("The quick <mask> jumps").ids
    assert bytes_.vocab.mask in shown
    row = transformers.AutoTokenizer.from_pretrained(tmp_path / "reader")("a", "The fox", return_offsets_mapping=True)
    assert row["input_ids"].count(bytes_.vocab.sep) == 2
    assert (0, 3) in row["offset_mapping"] or (4, 7) in row["offset_mapping"]  # no space before a word

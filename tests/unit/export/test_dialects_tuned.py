"""Tuned networks of every dialect: their class, and the same answers in transformers and from a graph."""

import json

import pytest
import transformers
from small_bert import small_model, write_folder
from small_dialects import SHAPES, tokenizer_for
from small_tuned import PAIR_ROWS, PAIRS, code_on_card, small_tuned, tuned_folder

from unmask.dialect import Dialect
from unmask.export.architecture import Architecture, Purpose
from unmask.export.onnx_file import Onnx
from unmask.export.read import load
from unmask.export.tuned import export_tuned
from unmask.export.write import export
from unmask.tune.outputs.choose import Choose
from unmask.tune.outputs.classify import Classify
from unmask.tune.outputs.span import Span
from unmask.tune.outputs.tag import Tag
from unmask.tune.policy import Full
from unmask.tune.tagging_scheme import Scheme

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
OUTPUTS = {
    Purpose.CLASSIFIER: Classify(("a", "b", "c")),
    Purpose.TAGGER: Tag(("B-X", "I-X", "O"), Scheme.BIO),
    Purpose.READER: Span(longest=9),
    Purpose.CHOOSER: Choose(),
}
OTHERS = [dialect for dialect in Dialect if dialect is not Dialect.BERT]


def root_of(folder, dialect):
    """The folder of a network that something was tuned from; only its settings matter here."""
    return write_folder(folder, small_model(300, row=False, trunk=SHAPES[dialect]), masked(dialect))


def masked(dialect):
    return Architecture(dialect, Purpose.MASKED_LM)


@pytest.mark.parametrize("dialect", OTHERS)
@pytest.mark.parametrize("purpose", OUTPUTS)
def test_every_kind_of_task_has_its_class(dialect, purpose, tmp_path):
    pytest.importorskip("onnxruntime")
    root_of(tmp_path / "root", dialect)
    tuned_folder(tmp_path / "tuned", small_tuned(OUTPUTS[purpose], Full(), dialect), root="../root")
    architecture, proof = export_tuned(tmp_path / "tuned", tmp_path / "out", extras=(Onnx(),))
    assert architecture == Architecture(dialect, purpose)
    assert max(proof.hidden, proof.logits, proof.others[0].apart) < 1e-5
    assert proof.logits > 0
    assert load(tmp_path / "out")[0].shape == SHAPES[dialect]


@pytest.mark.parametrize("dialect", OTHERS)
def test_pairs_are_answered_alike(dialect, tmp_path):
    """One token stands between two texts here, whatever the tokenizer of the family does; the export says so."""
    root_of(tmp_path / "root", dialect)
    tuned = small_tuned(OUTPUTS[Purpose.CLASSIFIER], Full(), dialect)
    ours = tuned_folder(tmp_path / "tuned", tuned, PAIR_ROWS, root="../root")
    export_tuned(tmp_path / "tuned", tmp_path / "out")
    left: dict[str, object] = {}
    exec(code_on_card(tmp_path / "out"), left)
    for (a, b), mine in zip(PAIRS, ours, strict=True):
        theirs = {one["label"]: one["score"] for one in left["answer"]({"text": a, "text_pair": b})}
        assert [theirs[label] for label in ("a", "b", "c")] == pytest.approx(mine.probabilities, abs=1e-5)


def test_a_tuned_network_whose_root_is_gone_is_known_by_its_shape(tmp_path):
    for dialect in OTHERS:
        tuned_folder(
            tmp_path / f"tuned-{dialect}", small_tuned(OUTPUTS[Purpose.TAGGER], Full(), dialect), root="../gone"
        )
        architecture, _ = export_tuned(tmp_path / f"tuned-{dialect}", tmp_path / dialect.value)
        assert architecture.dialect is (Dialect.BERT if dialect is Dialect.ERNIE else dialect)


def test_a_tokenizer_of_bytes_has_the_name_of_its_family_before_it_is_tuned_and_not_after(tmp_path):
    bytes_ = tokenizer_for(Dialect.ROBERTA)
    model = small_model(300, row=False, trunk=SHAPES[Dialect.ROBERTA])
    export(model, bytes_, tmp_path / "masked", masked(Dialect.ROBERTA))
    tuned_folder(tmp_path / "tuned", small_tuned(OUTPUTS[Purpose.READER], Full(), Dialect.ROBERTA))
    export_tuned(tmp_path / "tuned", tmp_path / "reader")
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

"""A tuned network as one of BERT's classes for tasks: which class, which names, and what is refused."""

import json
from dataclasses import replace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from small_bert import CHOOSER, CLASSIFIER, POSITIONS, READER, TAGGER
from small_tuned import ROWS, small_tuned, tuned_folder

from unmask.errors import InputError, UserError
from unmask.export.read import load
from unmask.export.source import open_source
from unmask.export.tuned import export_tuned, open_tuned
from unmask.export.tuned_class import model_of_tuned
from unmask.export.write import their_weights
from unmask.nets.reading import ReadOut
from unmask.tune.outputs.choose import Choose
from unmask.tune.outputs.classify import Classify
from unmask.tune.outputs.labels import Labels
from unmask.tune.outputs.pair import PairClass
from unmask.tune.outputs.rank import Rank
from unmask.tune.outputs.regress import Regress
from unmask.tune.outputs.span import Span
from unmask.tune.outputs.tag import Tag
from unmask.tune.outputs.write import Write
from unmask.tune.policies.adapter import Adapter
from unmask.tune.policies.frozen import Frozen
from unmask.tune.policies.layers import Layers
from unmask.tune.policies.lora import Lora
from unmask.tune.policies.norms import Norms
from unmask.tune.policies.top import Top
from unmask.tune.tagging_scheme import Scheme

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
TAGS = ("B-LOC", "I-LOC", "O")
EVERY = {
    Classify(("中立", "反对", "同意")): (CLASSIFIER, "single_label_classification"),
    Labels(("a", "b", "c")): (CLASSIFIER, "multi_label_classification"),
    Regress(mean=2.0, spread=3.0): (CLASSIFIER, "regression"),
    Rank(): (CLASSIFIER, "regression"),
    Tag(TAGS, Scheme.BIO): (TAGGER, None),
    Span(longest=9): (READER, None),
    Choose(): (CHOOSER, None),
}


@pytest.mark.parametrize("output", EVERY, ids=str)
def test_every_kind_of_task_has_its_class(output, tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(output))
    architecture, proof = export_tuned(tmp_path / "tuned", tmp_path / "out")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "out")
    assert (architecture, config.problem_type) == EVERY[output]
    assert config.architectures == [architecture.name]
    assert 0 < max(proof.hidden, proof.logits) < 1e-5
    labels = getattr(output, "labels", ())
    if labels:
        assert config.id2label == dict(enumerate(labels))
        assert config.label2id == {label: number for number, label in enumerate(labels)}


@pytest.mark.parametrize("output", EVERY, ids=str)
def test_import_is_the_same_table_backwards(output, tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(output))
    architecture, _ = export_tuned(tmp_path / "tuned", tmp_path / "out")
    back, _ = load(tmp_path / "out")
    before = model_of_tuned(open_tuned(tmp_path / "tuned")).state_dict()
    assert back.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in back.state_dict().items())
    written, again = load_file(tmp_path / "out" / "model.safetensors"), their_weights(back, architecture)
    assert written.keys() == again.keys()
    pooler = {name for name in written if "pooler" in name}
    assert bool(pooler) == (architecture in (CLASSIFIER, CHOOSER))


def test_an_old_tagger_with_a_pooler_that_it_does_not_use_is_read(tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(Tag(TAGS, Scheme.BIO)))
    export_tuned(tmp_path / "tuned", tmp_path / "out")
    state = load_file(tmp_path / "out" / "model.safetensors")
    width = state["classifier.weight"].shape[1]
    state |= {"bert.pooler.dense.weight": torch.ones(width, width), "bert.pooler.dense.bias": torch.ones(width)}
    save_file(state, tmp_path / "out" / "model.safetensors")
    back, _ = load(tmp_path / "out")
    assert torch.equal(back.each.weight, state["classifier.weight"])
    assert back.row.pool.weight.all()


def test_the_card_tells_the_task_and_how_to_read_its_answers(tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(Rank()))
    export_tuned(tmp_path / "tuned", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    for said in ("text-classification", "tuned from r1 to rank; accuracy 0.875", "rows learned: 90", "This is ranking"):
        assert said in card
    assert f"at most {POSITIONS} tokens" in card


def test_rows_are_cut_where_they_were_cut_in_training(tmp_path):
    tuned_folder(tmp_path / "tuned", replace(small_tuned(Classify(("a", "b"))), length=12))
    export_tuned(tmp_path / "tuned", tmp_path / "out")
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert len(words("今天天气真好，" * 9, truncation=True)["input_ids"]) == 12


@pytest.mark.parametrize("policy", [Frozen(), Norms(), Top(1), Lora(rank=2)], ids=str)
def test_what_ends_in_the_plain_shape_can_be_exported(policy, tmp_path):
    tuned = small_tuned(Classify(("a", "b")), policy)
    ours = tuned_folder(tmp_path / "tuned", tuned, ROWS)
    export_tuned(tmp_path / "tuned", tmp_path / "out")
    answer = transformers.pipeline("text-classification", str(tmp_path / "out"), top_k=None)
    for question, mine in zip(ROWS, ours, strict=True):
        likely = {one["label"]: one["score"] for one in answer([question.texts[0]])[0]}
        assert list(mine.probabilities) == pytest.approx([likely["a"], likely["b"]], abs=1e-5)


def test_updates_are_added_to_a_copy(tmp_path):
    tuned = small_tuned(Classify(("a", "b")), Lora(rank=2))
    before = dict(tuned.learner.named_parameters()).keys()
    model = model_of_tuned(tuned)
    assert dict(tuned.learner.named_parameters()).keys() == before
    assert not any("lora" in name for name in model.state_dict())


@pytest.mark.parametrize(
    ("output", "policy", "said"),
    [
        (Classify(("a", "b")), Adapter(4), r"adapters inside its blocks.*--policy lora"),
        (Classify(("a", "b")), Layers(), r"mixture of all layers.*--policy frozen"),
        (Tag(TAGS, Scheme.BIO, crf=True), Frozen(), r"together, by a CRF.*without --crf"),
        (PairClass(("a", "b")), Frozen(), r"word by word.*--kind classify"),
        (Write(), Frozen(), "tuned to write"),
        (Classify(("a", "b"), read=ReadOut.MEAN), Frozen(), "--read first"),
        (Choose(read=ReadOut.ATTENTION), Frozen(), "--read first"),
    ],
    ids=str,
)
def test_what_no_class_can_say_is_refused_with_a_way_out(output, policy, said, tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(output, policy))
    with pytest.raises(UserError, match=said):
        export_tuned(tmp_path / "tuned", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("output", [Classify(("a", "b")), Tag(TAGS, Scheme.BIO), Span(), Choose()], ids=str)
def test_neither_form_of_a_tuned_network_is_taken_for_a_pretrained_one(output, tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(output))
    export_tuned(tmp_path / "tuned", tmp_path / "out")
    for name in ("tuned", "out"):
        with pytest.raises(InputError, match="tuned for a task"):
            open_source(tmp_path / name)


def test_a_damaged_network_is_not_exported(tmp_path):
    tuned_folder(tmp_path / "tuned", small_tuned(Classify(("a", "b"))))
    said = json.loads((tmp_path / "tuned" / "task.json").read_text())
    said["files"]["model.safetensors"] = "0" * 32
    (tmp_path / "tuned" / "task.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="is not what was written"):
        export_tuned(tmp_path / "tuned", tmp_path / "out")
    assert not (tmp_path / "out").exists()

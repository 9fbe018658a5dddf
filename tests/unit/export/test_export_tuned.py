"""A tuned network in transformers: the same answers under the same names."""

import json

import numpy as np
import pytest
import torch
import transformers
from small_bert import POSITIONS, TEXTS, TRUNK, small_tokenizer

from unmask.errors import InputError
from unmask.export.source import open_source
from unmask.export.tuned import export_tuned
from unmask.train.learner import Learner
from unmask.tune.fields import Fields
from unmask.tune.row_task import Kind, RowTask
from unmask.tune.saved import Tuned, save_tuned
from unmask.tune.sheet import Sheet

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
PAIRS = [("今天天气真好", "我们去公园散步"), ("The quick fox", "the lazy dog."), ("天气", "dog")]


def tuned_folder(folder, task, pairs):
    tokenizer = small_tokenizer()
    learner = Learner(TRUNK, (task.objective,), tokenizer.vocab.size, POSITIONS)
    learner.draw(3)
    with torch.no_grad():
        for head in learner.heads.values():
            head.row.classify.weight.mul_(20)
            head.row.classify.bias.copy_(torch.arange(len(head.row.classify.bias)) / 5 + 0.1)
    names = ("a", "b")[: len(pairs[0])]
    tuned = Tuned(task, Fields(names, "label"), POSITIONS, learner.eval(), tokenizer)
    said = tuned.predict(pairs)
    truths = tuple(map(str, said.answers))
    sheet = Sheet("dev.jsonl", tuple(pairs), truths, tuple(f"dev.jsonl:{n}" for n in range(len(pairs))))
    folder.mkdir()
    save_tuned(tuned, folder, sheet, said, {"metrics": {"accuracy": 0.875}, "source": "r1", "rows": {"learned": 90}})
    return said


def load(folder):
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    return network, transformers.AutoTokenizer.from_pretrained(folder)


def test_classes_of_pairs_are_the_same_in_both_libraries(tmp_path):
    labels = ("中立", "反对", "同意")
    ours = tuned_folder(tmp_path / "tuned", RowTask(Kind.CLASSIFY, labels), PAIRS)
    proof = export_tuned(tmp_path / "tuned", tmp_path / "out")
    assert 0 <= proof.logits < 1e-5
    network, words = load(tmp_path / "out")
    with torch.no_grad():
        inputs = words([a for a, _ in PAIRS], [b for _, b in PAIRS], return_tensors="pt", padding=True)
        theirs = network(**inputs).logits
    np.testing.assert_allclose(theirs.numpy(), ours.scores_NC, atol=1e-5)
    assert tuple(network.config.id2label[n] for n in theirs.argmax(-1).tolist()) == ours.answers
    assert network.config.problem_type == "single_label_classification"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "text-classification" in card
    assert "tuned from r1 to classify; accuracy 0.875" in card


def test_a_number_is_the_same_in_both_libraries(tmp_path):
    rows = [(text,) for text in TEXTS[:2]]
    ours = tuned_folder(tmp_path / "tuned", RowTask(Kind.REGRESS), rows)
    export_tuned(tmp_path / "tuned", tmp_path / "out")
    network, words = load(tmp_path / "out")
    with torch.no_grad():
        theirs = network(**words([text for (text,) in rows], return_tensors="pt", padding=True)).logits
    assert network.config.problem_type == "regression"
    np.testing.assert_allclose(theirs.numpy()[:, 0], ours.amounts, atol=1e-5)


def test_neither_form_of_a_tuned_network_is_taken_for_a_pretrained_one(tmp_path):
    tuned_folder(tmp_path / "tuned", RowTask(Kind.CLASSIFY, ("a", "b")), PAIRS)
    export_tuned(tmp_path / "tuned", tmp_path / "out")
    for name in ("tuned", "out"):
        with pytest.raises(InputError, match="tuned for a task"):
            open_source(tmp_path / name)


def test_a_damaged_network_is_not_exported(tmp_path):
    tuned_folder(tmp_path / "tuned", RowTask(Kind.CLASSIFY, ("a", "b")), PAIRS)
    said = json.loads((tmp_path / "tuned" / "task.json").read_text())
    said["files"]["model.safetensors"] = "0" * 32
    (tmp_path / "tuned" / "task.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="is not what was written"):
        export_tuned(tmp_path / "tuned", tmp_path / "out")
    assert not (tmp_path / "out").exists()

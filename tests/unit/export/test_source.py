"""Opening a network: runs and Hugging Face folders, and a sentence for everything else."""

import json

import pytest
import torch
import transformers
from small_bert import small_model, write_folder
from small_run import drawn, write_run

from unmask.errors import InputError
from unmask.export.bert import Architecture
from unmask.export.source import open_source
from unmask.export.start import fill_learner
from unmask.export.write import export
from unmask.use.choices import Which
from unmask.use.fill import fill


def test_a_run_gives_the_weights_of_its_last_checkpoint_and_what_is_known(tmp_path):
    learner = drawn(2)
    source = open_source(write_run(tmp_path / "r1", {10: drawn(1), 20: learner}))
    state = learner.state_dict()
    for name, tensor in source.model.state_dict().items():
        part = name.partition(".")[0]
        ours = {"trunk": name, "tokens": f"heads.mlm.{name}", "row": f"heads.next.{name}"}[part]
        assert torch.equal(tensor, state[ours]), name
    assert source.model.tokens.token is source.model.trunk.embed.token
    assert not source.model.training
    assert source.name == source.about.name == "r1"
    assert source.about.recipe == "bert, 20 steps"
    assert source.about.paper == "arXiv:1810.04805"
    assert source.about.corpus == {"documents": 1234, "tokens": 5678}


def test_the_best_checkpoint_can_be_asked_for(tmp_path):
    first = drawn(1)
    run = write_run(tmp_path / "r1", {10: first, 20: drawn(2)}, best=10)
    assert torch.equal(open_source(run, Which.BEST).model.tokens.dense.weight, first.heads["mlm"].tokens.dense.weight)
    assert open_source(run, Which.BEST).about.recipe == "bert, 10 steps"
    assert open_source(run).about.recipe == "bert, 20 steps"


def test_without_a_trial_the_best_is_the_last(tmp_path):
    run = write_run(tmp_path / "r1", {10: drawn(1), 20: drawn(2)})
    assert open_source(run, Which.BEST).about.recipe == "bert, 20 steps"


def test_a_member_without_a_head_for_rows_has_none(tmp_path):
    model = open_source(write_run(tmp_path / "r1", {1: drawn(1, "roberta")}, name="roberta")).model
    assert model.row is None
    assert model.tokens is not None


def test_a_learner_filled_from_its_own_run_says_the_same(tmp_path):
    learner, other = drawn(1), drawn(5)
    model = open_source(write_run(tmp_path / "r1", {1: learner})).model
    assert fill_learner(other, model) == ()
    for name, tensor in learner.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name


def test_a_hugging_face_folder_is_opened_too(tmp_path):
    model = small_model()
    source = open_source(write_folder(tmp_path / "hf", model, Architecture.MASKED_LM))
    assert source.name == "hf"
    assert source.model.row is None
    assert torch.equal(source.model.tokens.dense.weight, model.tokens.dense.weight)


def test_a_flipped_byte_is_found(tmp_path):
    run = write_run(tmp_path / "r1", {10: drawn(1)})
    path = run / "checkpoints" / "step-000000010" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="step-000000010 is damaged"):
        open_source(run)


def test_a_run_description_that_does_not_fit_is_told(tmp_path):
    run = write_run(tmp_path / "r1", {10: drawn(1)})
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**said, "positions": 77}))
    with pytest.raises(InputError, match=r"does not fit what run\.json says"):
        open_source(run)
    del said["vocabulary"]
    (run / "run.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="does not describe a run"):
        open_source(run)
    (run / "run.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        open_source(run)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "is empty. Needed is the folder of a run"),
        ({"a.txt": ""}, r"holds neither run\.json nor config\.json"),
        ({"manifest.json": "{}", "tokenizer.json": "{}"}, "is a prepared corpus, not a network.*unmask pretrain"),
        ({"task.json": "{}", "config.json": "{}"}, "tuned for a task"),
        ({"run.json": '{"kind": "pretrain"}'}, "has saved no checkpoint yet"),
        ({"run.json": '{"kind": "tune"}'}, "does not describe a run of unmask pretrain"),
    ],
)
def test_any_other_folder_gets_a_sentence(files, said, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        open_source(tmp_path)


def test_a_file_and_a_missing_folder_get_a_sentence(tmp_path):
    (tmp_path / "model.bin").write_text("")
    with pytest.raises(InputError, match="is a file"):
        open_source(tmp_path / "model.bin")
    with pytest.raises(InputError, match="there is no such folder"):
        open_source(tmp_path / "gone")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_from_a_run_to_what_transformers_loads(tmp_path):
    run = write_run(tmp_path / "r1", {10: drawn(1)})
    source = open_source(run)
    export(source.model, source.tokenizer, tmp_path / "out", Architecture.PRE_TRAINING, source.about)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# r1" in card
    assert "recipe: bert, 10 steps, arXiv:1810.04805" in card
    network = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    inputs = words("今天天气真[MASK]", return_tensors="pt")
    with torch.no_grad():
        logits = network(**inputs).logits[inputs["input_ids"] == words.mask_token_id]
    chances, ids = logits.softmax(-1).topk(5)
    (ours,) = fill(source.model, source.tokenizer, ["今天天气真[MASK]"], 5)
    assert [guess.id for guess in ours.masks[0]] == ids[0].tolist()
    assert [guess.probability for guess in ours.masks[0]] == pytest.approx(chances[0].tolist(), abs=1e-5)

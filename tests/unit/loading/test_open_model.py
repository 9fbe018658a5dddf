"""Opening a network: runs and Hugging Face folders, and a sentence for everything else."""

import json

import pytest
import torch
import transformers
from small_bert import MASKED_LM, PRE_TRAINING, TRUNK, small_model, write_folder
from small_run import drawn, write_run

from unmask.config.inference import CheckpointChoice
from unmask.config.model_type import ModelType
from unmask.core.errors import InputError
from unmask.inference.fill_mask import fill_masks
from unmask.inference.pack_texts import pack
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import export_hf
from unmask.loading.open_model import open_model
from unmask.loading.warm_start import load_matching_weights


def test_a_run_gives_the_weights_of_its_last_checkpoint_and_what_is_known(tmp_path):
    learner = drawn(2)
    source = open_model(write_run(tmp_path / "r1", {10: drawn(1), 20: learner}))
    state = learner.state_dict()
    for name, tensor in source.model.state_dict().items():
        part = name.partition(".")[0]
        ours = {"network": name, "lm_head": f"heads.mlm.{name}", "row_head": f"heads.next.{name}"}[part]
        assert torch.equal(tensor, state[ours]), name
    assert source.model.lm_head.token is source.model.network.embed.token
    assert not source.model.training
    assert source.name == source.info.name == "r1"
    assert source.info.recipe == "bert, 20 steps"
    assert source.info.paper == "arXiv:1810.04805"
    assert source.info.corpus == {"documents": 1234, "tokens": 5678}


def test_the_best_checkpoint_can_be_asked_for(tmp_path):
    first = drawn(1)
    run = write_run(tmp_path / "r1", {10: first, 20: drawn(2)}, best=10)
    assert torch.equal(
        open_model(run, CheckpointChoice.BEST).model.lm_head.dense.weight, first.heads["mlm"].lm_head.dense.weight
    )
    assert open_model(run, CheckpointChoice.BEST).info.recipe == "bert, 10 steps"
    assert open_model(run).info.recipe == "bert, 20 steps"


def test_without_a_trial_the_best_is_the_last(tmp_path):
    run = write_run(tmp_path / "r1", {10: drawn(1), 20: drawn(2)})
    assert open_model(run, CheckpointChoice.BEST).info.recipe == "bert, 20 steps"


def test_a_member_without_a_head_for_rows_has_none(tmp_path):
    model = open_model(write_run(tmp_path / "r1", {1: drawn(1, "roberta")}, name="roberta")).model
    assert model.row_head is None
    assert model.lm_head is not None


def test_a_learner_filled_from_its_own_run_says_the_same(tmp_path):
    learner, other = drawn(1), drawn(5)
    model = open_model(write_run(tmp_path / "r1", {1: learner})).model
    assert load_matching_weights(other, model) == ()
    for name, tensor in learner.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name


def test_a_run_says_whose_names_it_is_written_in(tmp_path):
    assert open_model(write_run(tmp_path / "r1", {1: drawn(1)})).model_type is ModelType.BERT
    assert (
        open_model(write_run(tmp_path / "r2", {1: drawn(1, "electra")}, name="electra")).model_type is ModelType.ELECTRA
    )
    folder = write_folder(tmp_path / "hf", small_model(), Architecture(ModelType.ERNIE, HFTask.PRE_TRAINING))
    assert open_model(folder).model_type is ModelType.ERNIE


def test_fields_that_were_added_with_a_default_since_are_filled_in(tmp_path):
    run = write_run(tmp_path / "r1", {1: drawn(1)})
    said = json.loads((run / "run.json").read_text())
    for name in ("share_groups", "layers_per_group", "position_offset", "pooler_activation"):
        del said["recipe"]["network"][name]
    (run / "run.json").write_text(json.dumps(said))
    assert open_model(run).model.config == TRUNK


def test_another_format_is_refused(tmp_path):
    run = write_run(tmp_path / "r1", {1: drawn(1)})
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**said, "format": 2}))
    with pytest.raises(InputError, match=r"needs format 1.*found 2"):
        open_model(run)


def test_a_run_with_a_generator_has_two_networks(tmp_path):
    learner = drawn(3, "electra")
    source = open_model(write_run(tmp_path / "r1", {1: learner}, name="electra"))
    judge, guess = source.model, source.generator
    assert (judge.lm_head, judge.row_head, guess.row_head, guess.discriminator_head) == (None, None, None, None)
    assert torch.equal(judge.discriminator_head.dense.weight, learner.heads["replaced"].discriminator_head.dense.weight)
    assert torch.equal(guess.lm_head.dense.weight, learner.heads["guess"].lm_head.dense.weight)
    assert torch.equal(guess.network.embed.token.weight, learner.network.embed.token.weight)
    tokens = pack([[2, 9, 8, 3]])
    with torch.no_grad():
        ours, theirs = guess.network(tokens).last_TD, learner.eval().heads["guess"].encoder(tokens).last_TD
    assert torch.equal(ours, theirs)
    assert len(list(fill_masks(guess, source.tokenizer, ["天[MASK]"]))) == 1


def test_going_on_from_a_discriminator_draws_the_generator_anew(tmp_path):
    learner = drawn(3, "electra")
    source = open_model(write_run(tmp_path / "r1", {1: learner}, name="electra"))
    judge = Architecture(ModelType.ELECTRA, HFTask.DISCRIMINATOR)
    model = open_model(write_folder(tmp_path / "hf", source.model, judge)).model
    other = drawn(4, "electra")
    assert load_matching_weights(other, model) == ("guess",)
    assert torch.equal(other.heads["replaced"].discriminator_head.dense.weight, model.discriminator_head.dense.weight)
    assert other.heads["guess"].encoder.embed.token is other.network.embed.token  # and so it has what was learned
    assert load_matching_weights(other, model, source.generator) == ()
    for name, tensor in learner.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name


def test_a_network_that_says_tokens_is_no_beginning_for_a_generator():
    other = drawn(4, "electra")
    assert load_matching_weights(other, small_model(other.vocab_size, trunk=other.network.config)) == (
        "guess",
        "replaced",
    )


def test_a_hugging_face_folder_is_opened_too(tmp_path):
    model = small_model()
    source = open_model(write_folder(tmp_path / "hf", model, MASKED_LM))
    assert source.name == "hf"
    assert source.model.row_head is None
    assert torch.equal(source.model.lm_head.dense.weight, model.lm_head.dense.weight)


def test_a_flipped_byte_is_found(tmp_path):
    run = write_run(tmp_path / "r1", {10: drawn(1)})
    path = run / "checkpoints" / "step-000000010" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="step-000000010 is damaged"):
        open_model(run)


def test_a_run_description_that_does_not_fit_is_told(tmp_path):
    run = write_run(tmp_path / "r1", {10: drawn(1)})
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**said, "positions": 77}))
    with pytest.raises(InputError, match=r"does not fit the network of run\.json"):
        open_model(run)
    del said["vocabulary"]
    (run / "run.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="does not describe a run"):
        open_model(run)
    (run / "run.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        open_model(run)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "is empty. Needed is the folder of a run"),
        ({"a.txt": ""}, r"holds neither run\.json nor config\.json"),
        ({"manifest.json": "{}", "tokenizer.json": "{}"}, "is a prepared corpus, not a network.*unmask pretrain"),
        ({"task.json": "{}", "config.json": "{}"}, "fine-tuned for a task"),
        ({"run.json": '{"format": 1, "kind": "pretrain"}'}, "has saved no checkpoint yet"),
        ({"run.json": '{"format": 1, "kind": "tune"}'}, "does not describe a run of unmask pretrain"),
    ],
)
def test_any_other_folder_gets_a_sentence(files, said, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        open_model(tmp_path)


def test_a_file_and_a_missing_folder_get_a_sentence(tmp_path):
    (tmp_path / "model.bin").write_text("")
    with pytest.raises(InputError, match="is a file"):
        open_model(tmp_path / "model.bin")
    with pytest.raises(InputError, match="there is no such folder"):
        open_model(tmp_path / "gone")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_from_a_run_to_what_transformers_loads(tmp_path):
    run = write_run(tmp_path / "r1", {10: drawn(1)})
    source = open_model(run)
    export_hf(source.model, source.tokenizer, tmp_path / "out", PRE_TRAINING, source.info)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# r1" in card
    assert "recipe: bert, 10 steps, arXiv:1810.04805" in card
    network = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    inputs = words("今天天气真[MASK]", return_tensors="pt")
    with torch.no_grad():
        logits = network(**inputs).logits[inputs["input_ids"] == words.mask_token_id]
    chances, ids = logits.softmax(-1).topk(5)
    (ours,) = fill_masks(source.model, source.tokenizer, ["今天天气真[MASK]"], 5)
    assert [guess.id for guess in ours.candidates[0]] == ids[0].tolist()
    assert [guess.probability for guess in ours.candidates[0]] == pytest.approx(chances[0].tolist(), abs=1e-5)


def test_heads_without_a_class_are_named(tmp_path):
    assert open_model(write_run(tmp_path / "spans", {20: drawn(1, "spanbert")}, 20, "spanbert")).heads_left_out == (
        "sbo",
    )
    assert open_model(write_run(tmp_path / "bert", {20: drawn(1)}, 20)).heads_left_out == ()
    assert open_model(write_run(tmp_path / "both", {20: drawn(1, "electra")}, 20, "electra")).heads_left_out == ()

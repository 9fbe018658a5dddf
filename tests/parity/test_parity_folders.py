"""Folders: what we write they read, what they write we read, and nothing changes on the way."""

import json
from functools import cache

import pytest
import torch
import transformers
from parity_nets import EVERY_SIZE, POSITIONS, SHAPES, TINY, VOCABULARY, asked, drawn, drawn_for, pad_of
from safetensors.torch import load_file, save_file

from unmask.config.model_type import ModelInfo, ModelType
from unmask.config.network import TransformerConfig
from unmask.core.errors import InputError
from unmask.data.tokenize.extend import extend_tokenizer
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.interop.hf import parity_check
from unmask.interop.hf.config_json import write_config
from unmask.interop.hf.load import load_hf_model
from unmask.interop.hf.model_map import DOWNSTREAM_TASKS, Architecture, HFTask
from unmask.interop.hf.save import export_hf, to_hf_state_dict
from unmask.interop.hf.tokenizer_files import with_template
from unmask.loading.resize_embeddings import resize_embeddings
from unmask.nets.encoder import init_weights
from unmask.nets.model import EncoderWithHeads

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
TEXTS = (
    "今天天气真好，我们去公园散步。语言模型预测下一个词。",
    "The quick brown fox jumps over the lazy dog; naïve cafés don't mind.",
    "They read 20 pages a day, and the dog reads none.",
) * 3
SMALL = TransformerConfig(depth=2, width=32, heads=4, ffn_width=64)
SPECS = {
    "uncased": WordPiece(200, min_count=1),
    "cased": WordPiece(200, min_count=1, lowercase=False, strip_accents=False),
    "characters": Characters(200, min_count=1),
    "bytes": ByteBPE(300),
    "unigram": Unigram(200, coverage=1.0),
}


PRE_TRAINING, MASKED_LM, ENCODER = (
    Architecture(ModelType.BERT, purpose) for purpose in (HFTask.PRE_TRAINING, HFTask.MASKED_LM, HFTask.ENCODER)
)


@cache
def padding_with(pad):
    """A tokenizer whose id of padding is the given one; RoBERTa counts positions from there."""
    if pad < 2:
        return train_tokenizer(SPECS["bytes" if pad else "uncased"], TEXTS)
    content = train_tokenizer(SPECS["uncased"], TEXTS).content()
    vocab = content["model"]["vocab"]
    names = {number: name for name, number in vocab.items()}
    vocab["[PAD]"], vocab[names[pad]] = pad, vocab["[PAD]"]
    for entry in content["added_tokens"]:
        entry["id"] = vocab[entry["content"]]
    content["post_processor"] = None
    return with_template(Tokenizer.parse(json.dumps(content)))


@pytest.fixture(scope="module")
def tokenizer():
    return padding_with(0)


def small(vocabulary):
    model = EncoderWithHeads(SMALL, vocabulary, POSITIONS)
    init_weights(model, 0.1, torch.Generator().manual_seed(3))
    return model


@pytest.mark.parametrize(("architecture", "size"), EVERY_SIZE, ids=str)
def test_import_after_export_is_the_identity(architecture, size, tmp_path):
    model = drawn_for(architecture, size)
    tokenizer = padding_with(pad_of(model.config))
    shown = export_hf(model, tokenizer, tmp_path / "out", architecture)
    assert max(shown.max_hidden_difference, shown.max_logits_difference) < 1e-5
    assert shown.num_tokens > POSITIONS
    back, same = load_hf_model(tmp_path / "out")
    assert back.config == model.config
    expected = with_template(tokenizer, model.config.num_segments, architecture.task in DOWNSTREAM_TASKS)
    assert same.digest == expected.digest
    silent = architecture.task is HFTask.ENCODER
    for name, tensor in back.state_dict().items():
        if silent and name.startswith("row_head.classify"):
            assert not tensor.any()
        else:
            assert torch.equal(tensor, model.state_dict()[name]), name


@pytest.mark.parametrize(("architecture", "size"), EVERY_SIZE, ids=str)
def test_what_transformers_wrote_is_read_and_written_back_bit_for_bit(architecture, size, tokenizer, tmp_path):
    """Every number is theirs, drawn by them; settings and weights are as save_pretrained leaves them."""
    made = getattr(transformers, architecture.name)
    shape = SHAPES[architecture.model_type][size]
    config = made.config_class(**write_config(drawn_for(architecture, size), pad_of(shape), architecture))
    torch.manual_seed(0)
    other = made(config)
    other.save_pretrained(tmp_path)
    tokenizer.save(tmp_path / "tokenizer.json")
    model, _ = load_hf_model(tmp_path)
    assert model.config == shape
    written = to_hf_state_dict(model, architecture)
    known = {name: parameter.detach() for name, parameter in other.named_parameters()}
    assert written.keys() == known.keys() == load_file(tmp_path / "model.safetensors").keys()
    assert all(torch.equal(written[name], known[name]) for name in known)


def test_a_sharded_folder_with_the_names_of_2018_is_the_same_network(tokenizer, tmp_path):
    model = drawn(TINY)
    export_hf(model, tokenizer, tmp_path / "out", PRE_TRAINING)
    state = load_file(tmp_path / "out" / "model.safetensors")
    old = {name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): state[name] for name in state}
    old["bert.embeddings.position_ids"] = torch.arange(POSITIONS)[None]
    old["cls.predictions.decoder.weight"] = old["bert.embeddings.word_embeddings.weight"].clone()
    halves = {"a.safetensors": sorted(old)[::2], "b.safetensors": sorted(old)[1::2]}
    for file, names in halves.items():
        save_file({name: old[name] for name in names}, tmp_path / "out" / file)
    index = {"weight_map": {name: file for file, names in halves.items() for name in names}}
    (tmp_path / "out" / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "out" / "model.safetensors").unlink()
    # Google's own folder is named for the masked language model and holds the head for rows all the same.
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    (tmp_path / "out" / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMaskedLM"]}))
    back, _ = load_hf_model(tmp_path / "out")
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in back.state_dict().items())


@pytest.mark.parametrize("spec", sorted(SPECS))
def test_every_kind_of_tokenizer_cuts_alike_on_both_sides(spec, tmp_path):
    tokenizer = train_tokenizer(SPECS[spec], TEXTS)
    model = small(tokenizer.vocab.size)
    export_hf(model, tokenizer, tmp_path / "out", MASKED_LM, lines=TEXTS[:3])
    named = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())["tokenizer_class"]
    known = {"uncased": "BertTokenizerFast", "cased": "BertTokenizerFast", "bytes": "RobertaTokenizerFast"}
    assert named == known.get(spec, "PreTrainedTokenizerFast")
    other = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert other.mask_token_id == tokenizer.vocab.mask
    assert other.pad_token_id == tokenizer.vocab.pad
    assert other("dog")["input_ids"][0] == tokenizer.vocab.cls
    assert other("dog")["input_ids"][-1] == tokenizer.vocab.sep


def test_an_extended_vocabulary_is_exported_with_its_new_rows(tokenizer, tmp_path):
    model = small(tokenizer.vocab.size)
    longer = extend_tokenizer(tokenizer, ["语言模型", "covid-19", "dogfish"])
    larger = resize_embeddings(model, longer.old_pieces)
    text = ("语言模型 reads of Covid-19 and a dogfish.",)
    export_hf(larger, longer.tokenizer, tmp_path / "out", PRE_TRAINING, lines=text)
    other = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert set(longer.old_pieces) <= set(other(text[0])["input_ids"])


def test_a_difference_refuses_the_export_and_leaves_nothing(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(parity_check, "TOLERANCE", 0.0)
    with pytest.raises(InputError, match="reads other numbers"):
        export_hf(drawn(TINY), tokenizer, tmp_path / "out", PRE_TRAINING)
    assert not list(tmp_path.iterdir())


def test_other_tokens_refuse_the_export_and_leave_nothing(tokenizer, tmp_path, monkeypatch):
    cased = train_tokenizer(SPECS["cased"], TEXTS)
    broken = {"tokenizer_class": "BertTokenizerFast", "do_lower_case": True}
    monkeypatch.setattr("unmask.interop.hf.save.tokenizer_config", lambda *_: broken)
    with pytest.raises(InputError, match="other tokens"):
        export_hf(small(cased.vocab.size), cased, tmp_path / "out", MASKED_LM, lines=TEXTS[:2])
    assert not list(tmp_path.iterdir())


def test_the_card_says_what_is_known_and_how_to_load(tokenizer, tmp_path):
    about = ModelInfo("my-bert", "bert, tiny", "arXiv:1810.04805", "ab12", {"documents": 1234, "tokens": 5678})
    export_hf(small(VOCABULARY), tokenizer, tmp_path / "out", PRE_TRAINING, about)
    card = (tmp_path / "out" / "README.md").read_text()
    network = transformers.BertForPreTraining.from_pretrained(tmp_path / "out")
    for said in ("# my-bert", "arXiv:1810.04805", "`ab12`", "documents: 1,234", "license: unknown", "FOLDER"):
        assert said in card
    assert f"{network.num_parameters():,} parameters" in card


def test_the_settings_of_the_other_library_come_back(tokenizer, tmp_path):
    logging = transformers.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    export_hf(small(VOCABULARY), tokenizer, tmp_path / "out", ENCODER)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_a_loaded_network_reads_a_ragged_batch_as_the_original_does(tokenizer, tmp_path):
    model, question = drawn(TINY).eval(), asked()
    export_hf(model, tokenizer, tmp_path / "out", PRE_TRAINING)
    back, _ = load_hf_model(tmp_path / "out")
    with torch.no_grad():
        assert torch.equal(back.network(question.tokens).last_TD, model.network(question.tokens).last_TD)

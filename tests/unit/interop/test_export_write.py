"""Export: what is refused before anything is written, and the files that name the tokenizer."""

import errno
import json
import os
import sys

import pytest
import torch
from small_bert import MASKED_LM, PRE_TRAINING, small_model, small_tokenizer

from unmask.core.errors import InputError, UserError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.hf.save import export_hf, to_hf_state_dict
from unmask.interop.hf.tokenizer_files import special_names, tokenizer_config, with_template


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


def test_a_folder_with_something_in_it_is_left_alone(tokenizer, tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        export_hf(small_model(), tokenizer, tmp_path, MASKED_LM)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_without_the_other_library_a_sentence_says_how_to_get_it(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)  # what Python keeps for a module that cannot be found
    with pytest.raises(UserError, match=r"pip install 'unmask\[export\]'"):
        export_hf(small_model(), tokenizer, tmp_path / "out", MASKED_LM)
    assert not list(tmp_path.iterdir())


def test_broken_numbers_are_refused_by_name():
    model = small_model()
    with torch.no_grad():
        model.network.embed.norm.bias[3] = float("nan")
    with pytest.raises(InputError, match=r"not finite in network\.embed\.norm\.bias"):
        to_hf_state_dict(model, MASKED_LM)


def test_a_network_with_fewer_rows_than_the_tokenizer_is_refused(tokenizer, tmp_path):
    with pytest.raises(InputError, match="rows for 30 only"):
        export_hf(small_model(vocabulary=30), tokenizer, tmp_path / "out", MASKED_LM)
    assert not list(tmp_path.iterdir())


def test_tied_weights_are_written_once_and_in_float32():
    weights = to_hf_state_dict(small_model().bfloat16(), PRE_TRAINING)
    assert not [name for name in weights if "decoder" in name]
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}


def test_the_class_of_the_family_is_named_with_the_rules_of_the_tokenizer(tokenizer):
    config = tokenizer_config(tokenizer, 128)
    assert config["tokenizer_class"] == "BertTokenizerFast"
    assert (config["do_lower_case"], config["strip_accents"], config["tokenize_chinese_chars"]) == (True, True, True)
    assert config["model_max_length"] == 128
    assert config["added_tokens_decoder"][str(tokenizer.vocab.mask)]["content"] == "[MASK]"
    assert special_names(tokenizer)["cls_token"] == "[CLS]"


def test_other_rules_go_under_the_class_that_takes_them_as_they_are(tokenizer):
    content = tokenizer.content()
    content["normalizer"]["clean_text"] = False
    other = Tokenizer.parse(json.dumps(content))
    assert tokenizer_config(other, 128)["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_a_tokenizer_without_a_template_gets_one(tokenizer):
    assert with_template(tokenizer) is tokenizer
    content = tokenizer.content()
    content["post_processor"] = None
    bare = Tokenizer.parse(json.dumps(content))
    made = with_template(bare).pipeline.encode("fox", "dog")
    assert made.ids == tokenizer.pipeline.encode("fox", "dog").ids
    assert made.type_ids == tokenizer.pipeline.encode("fox", "dog").type_ids
    assert bare.pipeline.encode("fox").ids == made.ids[1 : made.ids.index(bare.vocab.sep)]


def test_a_full_disk_is_told_of_the_folder_that_was_named(tokenizer, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("unmask.interop.hf.save.save", full)
    with pytest.raises(UserError) as caught:
        export_hf(small_model(), tokenizer, tmp_path / "out", MASKED_LM)
    assert str(caught.value) == (
        f"The disk under {tmp_path / 'out'} is full. Nothing was written: free some space, or use another disk, and "
        "start the same command again."
    )
    assert not list(tmp_path.iterdir())

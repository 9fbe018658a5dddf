"""Loading, saving, roles and the readable side of ids."""

from __future__ import annotations

import json

import pytest

from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer


def test_what_is_saved_is_what_is_loaded(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "a.json")
    again = Tokenizer.load(tmp_path / "a.json")
    again.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert again.digest == tokenizer.digest
    assert again.special_tokens == tokenizer.special_tokens


def test_the_digest_sees_a_single_entry(tokenizers):
    content = tokenizers["uncased"].content()
    content["model"]["vocab"]["zzz"] = len(content["model"]["vocab"])
    assert Tokenizer.parse(json.dumps(content)).digest != tokenizers["uncased"].digest


def test_the_digest_does_not_see_padding(tokenizers):
    content = tokenizers["uncased"].content()
    padding = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    content["padding"] = {"strategy": "BatchLongest", **padding}
    loaded = Tokenizer.parse(json.dumps(content))
    assert loaded.digest == tokenizers["uncased"].digest
    assert loaded.pipeline.padding is None


def test_roles_by_id(tokenizer):
    vocab = tokenizer.vocab
    ids = [vocab.cls, vocab.sep, vocab.mask, vocab.pad, vocab.unk]
    assert tokenizer.ids_to_tokens(ids) == list(tokenizer.special_tokens)
    assert not set(ids) & set(vocab.ordinary.tolist())
    assert len(vocab.ordinary) == vocab.size - 5


def test_unused_entries_are_not_ordinary(tokenizers):
    content = tokenizers["uncased"].content()
    number = content["model"]["vocab"]["[unused7]"] = len(content["model"]["vocab"])
    assert number not in Tokenizer.parse(json.dumps(content)).vocab.ordinary


def test_the_template_names_the_ends(tokenizers):
    """A vocabulary with both <s> and [CLS]: what the post-processor uses is what counts."""
    content = tokenizers["uncased"].content()
    vocab = content["model"]["vocab"]
    vocab["<cls>"], vocab["<sep>"] = len(vocab), len(vocab) + 1
    text = json.dumps(content["post_processor"]).replace("[CLS]", "<cls>").replace("[SEP]", "<sep>")
    content["post_processor"] = json.loads(text)
    roles = Tokenizer.parse(json.dumps(content)).special_tokens
    assert (roles.cls, roles.sep) == ("<cls>", "<sep>")


@pytest.mark.parametrize("missing", ["[MASK]", "[PAD]"])
def test_a_missing_role_is_said(tokenizers, missing):
    text = json.dumps(tokenizers["uncased"].content()).replace(missing, "[OTHER]")
    with pytest.raises(InputError, match=rf"my\.json: the tokenizer has no {missing[1:-1].lower()} token"):
        Tokenizer.parse(text, "my.json")


def test_files_that_are_no_tokenizers(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        Tokenizer.load(tmp_path / "nowhere.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InputError, match=r"other\.json is not a tokenizer\.json"):
        Tokenizer.load(tmp_path / "other.json")


def test_ids_read_as_text(tokenizers):
    text = "the dog"
    for name in ("uncased", "cased", "bytes", "unigram"):
        tokenizer = tokenizers[name]
        ids = tokenizer.pipeline.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids) == text, name
        assert "".join(tokenizer.ids_to_tokens(ids)).replace("▁", "").replace("##", "").replace(" ", "") == "thedog", (
            name
        )


def test_an_id_from_elsewhere_is_refused(tokenizers):
    with pytest.raises(InputError, match="id 99999"):
        tokenizers["uncased"].ids_to_tokens([99999])

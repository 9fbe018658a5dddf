"""A folder for sentence-transformers: the vectors of `unmask embed`, from the other library."""

import json
import sys

import numpy as np
import pytest
from small_bert import ENCODER, POSITIONS, TRUNK, small_model, small_tokenizer
from small_tuned import TEXTS, code_on_card

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError, UserError
from unmask.inference.embed import LayerPooling, embed
from unmask.interop import extra_format
from unmask.interop.hf.save import NO_POOLER, export_hf
from unmask.interop.sentence_transformers import SentenceTransformersFormat

sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs: pip install 'unmask[sentence]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
LINES = (*TEXTS, "今天天气真好，我们去公园散步。" * 9)
"""The last is cut."""


def write(folder, sentence, **heads):
    model, tokenizer = small_model(**heads), small_tokenizer()
    return model.eval(), tokenizer, export_hf(model, tokenizer, folder, ENCODER, extras=(sentence,))


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("pool", [Pooling.MEAN, Pooling.FIRST, Pooling.MAX])
def test_both_make_the_same_vectors(pool, normalise, tmp_path):
    model, tokenizer, proof = write(tmp_path / "out", SentenceTransformersFormat(pool, normalise))
    (shown,) = proof.format_checks
    assert 0 < shown.max_difference < 1e-5
    assert str(shown).startswith(f"sentence-transformers {sentence_transformers.__version__} and unmask agree")
    other = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), device="cpu", local_files_only=True)
    assert other.max_seq_length == POSITIONS
    assert other.get_embedding_dimension() == TRUNK.width
    (ours,) = embed(model, tokenizer, LINES, LayerPooling(TRUNK.depth, pool, normalise))
    np.testing.assert_allclose(other.encode(list(LINES)), ours, atol=1e-5)
    if normalise:
        np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-5)


def test_its_files_are_those_that_every_release_reads(tmp_path):
    write(tmp_path / "out", SentenceTransformersFormat(Pooling.FIRST))
    modules = json.loads((tmp_path / "out" / "modules.json").read_text())
    assert [one["type"] for one in modules] == [f"sentence_transformers.models.{n}" for n in ("Transformer", "Pooling")]
    pooling = json.loads((tmp_path / "out" / "1_Pooling" / "config.json").read_text())
    assert pooling["pooling_mode_cls_token"] is True
    assert pooling["pooling_mode_mean_tokens"] is False


def test_a_network_without_a_pooler_gets_a_silent_one_and_says_so(tmp_path):
    _, _, proof = write(tmp_path / "out", SentenceTransformersFormat(), row=False)
    assert proof.format_checks[0].max_difference < 1e-5
    assert NO_POOLER.format("BertModel") in (tmp_path / "out" / "README.md").read_text()


def test_the_card_is_one_of_sentence_vectors_and_its_code_works(tmp_path, capsys):
    write(tmp_path / "out", SentenceTransformersFormat(normalize=True))
    card = (tmp_path / "out" / "README.md").read_text()
    assert "library_name: sentence-transformers\npipeline_tag: sentence-similarity" in card
    exec(code_on_card(tmp_path / "out", 1), {})
    assert "tensor" in capsys.readouterr().out


def test_other_vectors_refuse_the_export_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(extra_format, "TOLERANCE", 0.0)
    with pytest.raises(InputError, match="gives other vectors"):
        write(tmp_path / "out", SentenceTransformersFormat())
    assert not list(tmp_path.iterdir())


def test_without_the_library_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UserError, match=r"pip install 'unmask\[sentence\]'"):
        write(tmp_path / "out", SentenceTransformersFormat())
    assert not list(tmp_path.iterdir())

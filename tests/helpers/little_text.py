"""Rows for members without a disk: an invented corpus, and sentences with their real words."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "examples"))
from small_corpus import make_corpus

from unmask.core.records import RowBatch, TokenUnits, UnitFlag
from unmask.data.corpus.corpus import Corpus
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab
from unmask.walks.context import annotate

SIZE = 64


def corpus(documents: int = 40) -> Corpus:
    """Documents of five sentences, over a vocabulary of 64 ids."""
    made = make_corpus([[9, 7, 12, 8, 11]] * documents, shards=2)
    vocab = Vocab(SIZE, 1, 2, 3, 0, 4, np.arange(5, SIZE, dtype=np.int32), np.zeros(0, np.int32))
    shards = (replace(shard, ids=shard.ids % (SIZE - 5) + 5) for shard in made.shards)
    return replace(made, shards=tuple(shards), vocab=vocab)


def rows_of(texts: Sequence[str], tokenizer: Tokenizer) -> RowBatch:
    """Each text as a row `[CLS] text [SEP]`, with the words that a segmenter finds in it."""
    encode, vocab = Encoder(tokenizer), tokenizer.vocab
    docs = [encode(annotate(text, frozenset())) for text in texts]
    ids = [np.concatenate([[vocab.cls], doc.ids, [vocab.sep]]).astype(np.int32) for doc in docs]
    bits = [np.concatenate([[UnitFlag.BORDER], doc.units.bits, [UnitFlag.BORDER]]).astype(np.uint8) for doc in docs]
    rows = np.append(0, np.cumsum([len(row) for row in ids]))
    fixed = np.zeros(rows[-1], dtype=np.bool_)
    fixed[rows[:-1]] = fixed[rows[1:] - 1] = True
    plain = np.zeros(rows[-1], dtype=np.int32)
    return RowBatch(np.concatenate(ids), plain.astype(np.uint8), plain, fixed, TokenUnits(np.concatenate(bits)), rows)

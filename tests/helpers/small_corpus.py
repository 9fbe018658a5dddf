"""Small corpora in memory: every token is its own address, so a test can see where it came from."""

from pathlib import Path

import numpy as np

from unmask.core.records import UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.tokenize.vocab import Vocab

TEXT = 1000
VOCAB = Vocab(1 << 20, 1, 2, 3, 0, 4, np.arange(TEXT, 1 << 20, dtype=np.int32), np.zeros(0, np.int32))


def make_corpus(documents, shards=1, word=2):
    """A corpus whose documents are lists of sentence lengths; the id of a token is `TEXT` plus its address."""
    parts = np.array_split(np.arange(len(documents)), shards)
    made, base = [], 0
    for part in parts:
        bits, starts = [], [0]
        for number in part:
            for length in documents[number]:
                row = np.zeros(length, np.uint8)
                row[::word] = UnitFlag.WORD
                row[0] = UnitFlag.BORDER
                bits.append(row)
            starts.append(sum(map(len, bits)))
        units = np.concatenate(bits)
        made.append(Shard(np.arange(base, base + len(units)) + TEXT, units, np.array(starts), base))
        base += len(units)
    counts = Counts(documents=len(documents), tokens=base)
    manifest = Manifest("", "", (UnitKind.WORD, UnitKind.SENTENCE), {}, counts, {}, {})
    return Corpus(Path(), manifest, tuple(made), VOCAB)

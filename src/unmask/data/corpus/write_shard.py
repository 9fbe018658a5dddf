"""TokenDocs to disk: one shard is one folder of flat arrays.

What arrives: the tokenised documents of one shard. What leaves: `ids.npy` (2 or 4 bytes a token), `units.npy` (1 byte a
token), `documents.npy` (where documents begin), `entities.npy` when entities carry labels, and `info.json`.
What never happens here: a shard that is there but not whole. Digests of every file are stored beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from unmask.core.io.atomic import atomic_folder, write_array, write_json
from unmask.core.records import TokenDoc, UnitFlag, UnitKind
from unmask.data.corpus.manifest import Counts, ShardInfo


def write_shard(
    folder: Path, docs: Sequence[TokenDoc], vocab: tuple[int, int], source: str, characters: int
) -> ShardInfo:
    """Write one shard. `vocab` is the size of the vocabulary and the id of its unknown token."""
    size, unknown = vocab
    given, docs = len(docs), [doc for doc in docs if len(doc.ids)]  # a text of invisible characters has no tokens
    ids = np.concatenate([np.zeros(0, np.int32), *(doc.ids for doc in docs)]).astype(
        np.uint16 if size <= 1 << 16 else np.uint32
    )
    bits = np.concatenate([np.zeros(0, np.uint8), *(doc.units.bits for doc in docs)])
    labels = [label for doc in docs for label in doc.labels.get(UnitKind.ENTITY, ())]
    names = tuple(sorted(set(labels)))
    arrays = {"ids": ids, "units": bits, "documents": np.cumsum([0, *(len(doc.ids) for doc in docs)], dtype=np.int64)}
    if names:
        number = {name: i for i, name in enumerate(names)}
        arrays["entities"] = np.array([number[label] for label in labels], dtype=np.int32)
    counts = Counts(
        documents=len(docs),
        sentences=_count(bits, UnitFlag.SENTENCE),
        words=_count(bits, UnitFlag.WORD),
        phrases=_count(bits, UnitFlag.PHRASE),
        entities=_count(bits, UnitFlag.ENTITY),
        characters=characters,
        tokens=len(ids),
        unknown=int((ids == unknown).sum()),
        empty=given - len(docs),
        dialogues=sum(bool(doc.units.bits[0] & UnitFlag.TURN) for doc in docs),
        turns=_count(bits, UnitFlag.TURN),
    )
    with atomic_folder(folder) as part:
        files = {name: write_array(part / f"{name}.npy", array) for name, array in arrays.items()}
        info = ShardInfo(counts, source, files, names)
        write_json(part / "info.json", asdict(info))
    return info


def _count(bits: np.ndarray, flag: int) -> int:
    return int(np.count_nonzero(bits & flag))

"""Shards: a worker process annotates, tokenizes and writes one batch of documents as flat arrays.

A shard depends on its batch alone. It has `ids.npy` (2 or 4 bytes a token), `units.npy` (1 byte a token),
`documents.npy` (offsets), `entities.npy` if entities have labels, and `info.json` with the digests of all files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from unmask.core.io.atomic import atomic_folder, write_array, write_json
from unmask.core.records import Document, TokenDoc, UnitFlag, UnitKind
from unmask.data.corpus.manifest import Counts, ShardInfo, shard_folder
from unmask.data.text.protocol import Annotator
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ShardInput:
    """The input of one shard."""

    number: int
    documents: tuple[Document, ...]
    digest: str
    """The digest of the text."""
    position: int
    """The position in the input after this batch, in bytes on disk."""


def text_digest(documents: Sequence[Document]) -> str:
    """A digest of texts with their lengths, and of dialogue turns with their speakers."""
    state = hashlib.blake2b(digest_size=16)
    for document in documents:
        raw = document.text.encode("utf-8")
        state.update(len(raw).to_bytes(8, "little"))
        state.update(raw)
        if UnitKind.TURN in document.char_spans:
            turns = document.char_spans[UnitKind.TURN]
            state.update(turns.spans.start.astype("<i8").tobytes() + "".join(turns.labels).encode())
    return state.hexdigest()


def write_shard(
    folder: Path, docs: Sequence[TokenDoc], vocab: tuple[int, int], source: str, characters: int
) -> ShardInfo:
    """Write one shard. `vocab` is the vocabulary size and the unknown id."""
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


class ShardWorker:
    """Creates shards in one process; the encoder keeps its cache between them."""

    def __init__(self, folder: Path, annotators: tuple[Annotator, ...], tokenizer: Path) -> None:
        self.folder, self.annotators = folder, annotators
        loaded = Tokenizer.load(tokenizer)
        self.network = Encoder(loaded)
        self.vocab = loaded.vocab

    def __call__(self, batch: ShardInput) -> tuple[int, ShardInfo, int]:
        """Annotate, tokenize and write a batch."""
        path = shard_folder(self.folder, batch.number)
        characters = sum(len(document.text) for document in batch.documents)
        docs = list(self._encode(batch.documents))
        info = write_shard(path, docs, (self.vocab.size, self.vocab.unk), batch.digest, characters)
        return batch.number, info, batch.position

    def _encode(self, documents: tuple[Document, ...]) -> Iterator[TokenDoc]:
        for document in documents:
            yield self.network(annotate(document, self.annotators))


def annotate(document: Document, annotators: tuple[Annotator, ...]) -> Document:
    """The document with the spans of all annotators, in their order."""
    for annotate in annotators:
        document = annotate(document)
    return document

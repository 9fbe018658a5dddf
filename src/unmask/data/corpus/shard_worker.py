"""The worker of preparing: one batch of documents becomes one shard.

What arrives: batches, one after another. What leaves: shards on disk, and the record of each.
What never happens here: a shard that depends on anything but its batch. Caches only make the next one faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unmask.core.records import Document, TokenDoc
from unmask.data.corpus.manifest import ShardInfo, shard_folder
from unmask.data.corpus.shard_input import ShardInput
from unmask.data.corpus.write_shard import write_shard
from unmask.data.text.protocol import Annotator
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer


class ShardWorker:
    """Makes one shard after another in one process; the encoder keeps its cache between them."""

    def __init__(self, folder: Path, annotators: tuple[Annotator, ...], tokenizer: Path) -> None:
        self.folder, self.annotators = folder, annotators
        loaded = Tokenizer.load(tokenizer)
        self.network = Encoder(loaded)
        self.vocab = loaded.vocab

    def __call__(self, batch: ShardInput) -> tuple[int, ShardInfo, int]:
        """Find the units of every document, tokenise, write."""
        path = shard_folder(self.folder, batch.number)
        characters = sum(len(document.text) for document in batch.documents)
        docs = list(self._encode(batch.documents))
        info = write_shard(path, docs, (self.vocab.size, self.vocab.unk), batch.digest, characters)
        return batch.number, info, batch.position

    def _encode(self, documents: tuple[Document, ...]) -> Iterator[TokenDoc]:
        for document in documents:
            yield self.network(annotate(document, self.annotators))


def annotate(document: Document, annotators: tuple[Annotator, ...]) -> Document:
    """The document with the marks of every annotator, in their order."""
    for annotate in annotators:
        document = annotate(document)
    return document

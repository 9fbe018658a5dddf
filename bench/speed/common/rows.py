"""The same text as rows for both sides: ours of a plain cloze, and those of `transformers` through its own collator.

What arrives: a prepared corpus. What leaves: a feed of masked rows; rows joined as the examples of `transformers` join
them; their collator; and padded tensors that their model takes.
What never happens here: a difference in the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import DataCollatorForLanguageModeling

from bench.speed.common.peer import their_tokenizer
from unmask.config.attention_pattern import FULL, WITHIN_DOCUMENT
from unmask.core.records import Ids, InputsAndTargets
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corrupt.masking import MaskTokens, RandomTokens
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.row_plan import DynamicMasking
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab
from unmask.objectives.mlm import MLM
from unmask.tasks.batches import TaskBatches, to_padded
from unmask.tasks.recipe import Task


def cloze_feed(corpus: Corpus, length: int, join: DocumentBoundary) -> TaskBatches:
    """Rows of masked tokens, nothing else; documents in a row do not see each other."""
    task = Task(
        name="cloze",
        examples=Packed(join),
        corruption=MaskTokens(RandomTokens()),
        objectives=(MLM(),),
        attention=FULL if join is DocumentBoundary.NEVER else WITHIN_DOCUMENT,
    )
    return TaskBatches.for_task(task, corpus, length, DynamicMasking(), seed=1)


def collator_of(data: Path) -> DataCollatorForLanguageModeling:
    """Their collator with the tokenizer of a prepared corpus."""
    path = data / "tokenizer.json"
    return DataCollatorForLanguageModeling(tokenizer=their_tokenizer(Tokenizer.load(path), path), mlm=True)


def grids(instance: InputsAndTargets, pad: int, masked: bool = False) -> dict[str, Tensor]:
    """Our masked rows as their model takes them."""
    grids = {name: torch.from_numpy(grid) for name, grid in to_padded(instance, pad).items()}
    return grids if masked else unmasked(grids)


def unmasked(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A batch for their model, without a mask where no place is padded."""
    full = "attention_mask" in batch and bool(batch["attention_mask"].all())
    return {name: grid for name, grid in batch.items() if not (full and name == "attention_mask")}


class Rows(Dataset[dict[str, list[int]]]):
    """Rows of text that goes on across documents, as lists of ids: what their collator takes."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: int) -> dict[str, list[int]]:
        return {"input_ids": self.ids[row].tolist()}


def joined(corpus: Corpus, length: int) -> Ids:
    """All text in full rows: every document between its two marks, in one line, cut evenly; the last piece is left."""
    line = np.concatenate([_marked(shard, corpus.vocab) for shard in corpus.shards])
    return line[: len(line) // length * length].reshape(-1, length)


def _marked(shard: Shard, vocab: Vocab) -> Ids:
    """The tokens of a shard with a mark behind and before every document: where two meet, the first one ends first."""
    starts, ends = np.asarray(shard.documents[:-1]), np.asarray(shard.documents[1:])
    marks = np.repeat(np.array([vocab.sep, vocab.cls], dtype=np.int32), len(starts))
    ids: Ids = np.insert(np.asarray(shard.ids).astype(np.int32), np.concatenate([ends, starts]), marks)
    return ids

"""Data for the probes: a subset of a corpus, fixed rows, and task files of segment pairs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from unmask.core.records import RowBatch, TokenDoc, TokenUnits
from unmask.core.rng import Key, permuted_index
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.manifest import shard_folder
from unmask.data.corpus.shard_worker import write_shard
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.input_formats.row_plan import InputFormat, build_rows
from unmask.data.tokenize.tokenizer import Tokenizer

PAIR_KINDS = {"next": Negative.RANDOM, "order": Negative.SWAPPED}
"""Next-sentence prediction and sentence-order prediction, by the name of their fact."""
MAX_ROWS = 2000


def write_subset(corpus: Corpus, num_tokens: int, out: Path) -> None:
    """Write a corpus of whole documents with about `num_tokens` tokens, drawn from the whole corpus."""
    docs: list[TokenDoc] = []
    for doc in _shuffled_documents(corpus):
        docs.append(doc)
        num_tokens -= len(doc.ids)
        if num_tokens <= 0:
            break
    out.mkdir(parents=True, exist_ok=True)
    vocab = corpus.vocab
    info = write_shard(shard_folder(out, 0), docs, (vocab.size, vocab.unk), "cut", 0)
    shutil.copy(corpus.folder / "tokenizer.json", out)
    if (corpus.folder / "vectors").is_dir():
        shutil.copytree(corpus.folder / "vectors", out / "vectors", dirs_exist_ok=True)
    replace(corpus.manifest, counts=info.counts, shards=(info,)).save(out / "manifest.json")
    print(f"{out}: {info.counts.documents:,} documents, {info.counts.tokens:,} tokens")


def _shuffled_documents(corpus: Corpus) -> Iterator[TokenDoc]:
    documents = [(shard, number) for shard in corpus.shards for number in range(len(shard.documents) - 1)]
    order = permuted_index(np.arange(len(documents)), len(documents), Key.of(0, "claims", "cut"))
    for at in order.tolist():
        shard, number = documents[at]
        part = slice(int(shard.documents[number]), int(shard.documents[number + 1]))
        yield TokenDoc(np.asarray(shard.ids[part]).astype(np.int32), TokenUnits(np.asarray(shard.units[part])))


def fixed_rows(input_format: InputFormat, corpus: Corpus, length: int, max_rows: int = MAX_ROWS) -> RowBatch:
    """Uncorrupted rows of a corpus: the same rows in the same order at every call."""
    key = Key.of(0, "claims", length)
    plan = input_format.plan(corpus, length, key)
    chosen = permuted_index(np.arange(min(len(plan), max_rows)), len(plan), key.fold_in("some"))
    return build_rows(corpus, plan, chosen, input_format.template, corpus.vocab)


def segment_pairs(kind: str, corpus: Corpus, length: int, max_rows: int = MAX_ROWS) -> RowBatch:
    """Rows of two segments with the fact that a kind of pairs is named for."""
    return fixed_rows(SegmentPairs(PAIR_KINDS[kind], short_fraction=0.0), corpus, length, max_rows)


def write_pair_tasks(train: Corpus, heldout: Corpus, tokenizer: Tokenizer, out: Path, length: int, rows: int) -> None:
    """Write task files of two texts per line, labelled by whether the second follows the first."""
    out.mkdir(parents=True, exist_ok=True)
    for kind in PAIR_KINDS:
        for part, corpus, max_rows in (("train", train, rows), ("dev", heldout, MAX_ROWS)):
            pairs = segment_pairs(kind, corpus, length, max_rows)
            path = out / f"{kind}.{part}.jsonl"
            lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _pair_lines(pairs, kind, tokenizer))
            path.write_text(lines, encoding="utf-8")
            print(f"{path}: {len(pairs):,} pairs", flush=True)


def _pair_lines(pairs: RowBatch, fact: str, tokenizer: Tokenizer) -> Iterator[dict[str, str]]:
    for row, value in enumerate(pairs.facts[fact].tolist()):
        part = slice(int(pairs.rows[row]), int(pairs.rows[row + 1]))
        ids, segment, is_text = pairs.ids[part], pairs.segment[part], ~pairs.protected[part]
        text_a, text_b = (tokenizer.decode(ids[is_text & (segment == number)]) for number in (0, 1))
        yield {"text_a": text_a, "text_b": text_b, "label": ("consecutive", "not")[value]}

"""Masking, side by side with the collators of `transformers`: speed on one core, and what each does to the text.

    .venv/bin/python -m bench.speed.masking --data FOLDER
    .venv/bin/python -m bench.speed.masking --data FOLDER --audit --text FILE [FILE ...]

What arrives: a prepared corpus; for the audit also the text that it was prepared from, in the same order.
What leaves: one table. Both sides see the same rows in the same run; speeds count text and special tokens, no padding.
What never happens here: a second thread. Time is the processor time of the one there is.

The collator needs the characters that each token covers (`offset_mapping`). The audit takes the true ones from the
text; for speed, where their values do not matter, tokens are taken to follow each other closely.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.speed.common.peer import Peer, row_features
from unmask.audits.rows import AuditBatch
from unmask.audits.selection import MaskRate, WholeUnitsCheck
from unmask.core.records import Cloze, Ints, RowBatch, UnitKind
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.document_stream import CollectConfig, DropCounts, stream_documents
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.masking import MaskTokens, RandomTokens, Replace, ReplaceBy, WholeUnits, geometric
from unmask.data.corrupt.mass_fragment import MassFragment
from unmask.data.corrupt.protocol import Corruption
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.row_plan import DynamicMasking, EpochSampler, RowPlan, build_rows
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab

ROWS = 256
BATCHES = 4
ENOUGH = 20_000_000
EXAMPLES = Packed(DocumentBoundary.BORDERS)
NGRAM = (0.4, 0.3, 0.2, 0.1)
SPAN = Replace(mask=0.8, random=0.1, keep=0.1, per=ReplaceBy.SPAN)
SIMILAR = Replace(similar=0.8, random=0.1, keep=0.1, per=ReplaceBy.WORD)
WORDS = MaskTokens(WholeUnits())

RULES: dict[str, Corruption] = {
    "token (BERT)": MaskTokens(RandomTokens()),
    "whole word (wwm)": WORDS,
    "n-gram (40/30/20/10)": MaskTokens(WholeUnits(run_lengths=NGRAM, inside=UnitKind.SENTENCE)),
    "span (SpanBERT)": MaskTokens(WholeUnits(run_lengths=geometric(0.2, 10)), SPAN),
    "similar (MacBERT)": MaskTokens(WholeUnits(run_lengths=NGRAM, inside=UnitKind.SENTENCE), SIMILAR),
    "sentinels (T5)": SpanCorruption(),
    "infill (BART)": TextInfilling(),
    "delete (BART)": TokenDeletion(),
    "permute (BART)": PermuteSentences(),
    "fragment (MASS)": MassFragment(),
    "order (XLNet)": PermutationOrder(),
}


@dataclass(frozen=True)
class Rows:
    """Rows of one length from the corpus."""

    length: int
    plan: RowPlan
    corpus: Corpus

    def example(self, rows: Ints) -> RowBatch:
        """Build some rows."""
        return build_rows(self.corpus, self.plan, rows, EXAMPLES.template, self.corpus.vocab)

    def addresses(self, rows: Ints, example: RowBatch) -> Ints:
        """Where in the corpus each token of these rows stands."""
        pieces = np.concatenate([np.arange(self.plan.rows[row], self.plan.rows[row + 1]) for row in rows])
        text = [np.arange(self.plan.length[i]) + self.plan.start[i] for i in pieces]
        found = np.full(len(example.ids), -1)
        found[~example.protected] = np.concatenate(text)
        return found


def main() -> None:
    on_one_core()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="a prepared corpus")
    parser.add_argument("--text", nargs="+", default=[], help="the text it was prepared from")
    parser.add_argument("--audit", action="store_true", help="what each side does to the text, instead of speed")
    parser.add_argument("--rows", type=int, default=2048, help="rows to audit")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each speed")
    wishes = parser.parse_args()
    if wishes.audit and not wishes.text:
        parser.error("--audit needs --text: the collator reads words off the gaps between characters")
    warnings.filterwarnings("ignore")
    corpus = Corpus.open(wishes.data)
    peer = Peer(Tokenizer.load(wishes.data / "tokenizer.json"), wishes.data / "tokenizer.json")
    if wishes.audit:
        compare_audits(corpus, peer, wishes.text, wishes.rows)
    else:
        compare_speeds(corpus, peer, wishes.seconds)


def compare_speeds(corpus: Corpus, peer: Peer, seconds: float) -> None:
    """Tokens a second, ours and theirs, and how many times theirs ours is."""
    tokens = corpus.manifest.counts.tokens
    print(f"{tokens:,} tokens; {ROWS} rows at a time; million tokens a second of processor time, one thread")
    print("collator: as a data loader calls it; its core: the masking alone, tensors in, tensors out")
    if not len(corpus.vocab.similar_words):
        print("this corpus has no table of similar words: that rule shows random words (see unmask similar-words)")
    print()
    print(f"{'rows of':>7}  {'rule':22} {'ours':>7}  {'collator':>8} {'ratio':>6}  {'its core':>8} {'ratio':>6}")
    for length in (512, 128):
        rows = plan_rows(corpus, length)
        if len(rows.plan) < ROWS * BATCHES:
            print(f"{length:>7}  only {len(rows.plan)} rows: prepare at least {ROWS * BATCHES * length:,} tokens")
            continue
        theirs = {whole: their_speeds(rows, peer, whole, seconds) for whole in (False, True)}
        for name, rule in RULES.items():
            ours = our_speed(rows, rule, seconds)
            line = f"{length:>7}  {name:22} {ours:>7.1f}"
            if isinstance(rule, MaskTokens):  # the collators have no counterpart of the other rules
                call, core = theirs[rule.select != RandomTokens()]
                line += f"  {call:>8.2f} {ours / call:>5.0f}x  {core:>8.2f} {ours / core:>5.0f}x"
            print(line, flush=True)
    end_to_end(corpus, seconds)


def end_to_end(corpus: Corpus, seconds: float) -> None:
    """From shards, at random: which rows, fetch, place special tokens, corrupt."""
    begun = time.perf_counter()
    rows = plan_rows(corpus, 512)
    planned = time.perf_counter() - begun
    visits, vocab = EpochSampler(len(rows.plan), DynamicMasking(), Key.of(1, "bench")), corpus.vocab
    print(f"\nfrom shards, rows of 512 in random order ({len(rows.plan):,} rows, planned in {planned:.1f} s)")
    if corpus.manifest.counts.tokens < ENOUGH:
        print(f"  the corpus has {corpus.manifest.counts.tokens:,} tokens; {ENOUGH:,} are needed for a fair figure")

    def fetch(turn: int) -> tuple[RowBatch, Key]:
        row, key = visits(np.arange(turn * ROWS, (turn + 1) * ROWS))
        return rows.example(row), key

    print(f"  build alone             {best(lambda turn: len(fetch(turn)[0].ids), seconds):>7.1f} M tokens/s")
    for name in ("token (BERT)", "whole word (wwm)", "span (SpanBERT)"):

        def visit(turn: int, rule: Corruption = RULES[name]) -> int:
            example, key = fetch(turn)
            return len(rule(example, vocab, key).inputs.ids)

        print(f"  build and {name:16} {best(visit, seconds):>6.1f} M tokens/s", flush=True)


def our_speed(rows: Rows, rule: Corruption, seconds: float) -> float:
    batches = [rows.example(part) for part in parts(rows)]
    vocab = with_sentinels(rows.corpus.vocab)
    keys = [Key.of(0, "bench", turn).fold_in(np.arange(ROWS)) for turn in range(64)]

    def call(turn: int) -> int:
        example = batches[turn % BATCHES]
        rule(example, vocab, keys[turn % 64])
        return len(example.ids)

    return best(call, seconds)


def their_speeds(rows: Rows, peer: Peer, whole: bool, seconds: float) -> tuple[float, float]:
    """The collator as it is called, and its masking alone; each in batches of 32 or 256 rows, whichever is faster."""
    part = next(iter(parts(rows)))
    example = rows.example(part)
    features = row_features(example, rows.length, closely(rows.addresses(part, example)), rows.corpus.vocab)
    size = len(example.ids)
    speeds: list[tuple[float, float]] = []
    for count in (32, ROWS):
        some = [features[first : first + count] for first in range(0, ROWS, count)]
        tensors = [peer.tensors(chunk) for chunk in some]
        mine = size / len(some)
        call = best(lambda turn, some=some, mine=mine: peer.call(some[turn % len(some)], whole) and mine, seconds)
        core = best(lambda turn, t=tensors, mine=mine: peer.core(t[turn % len(t)], whole) and mine, seconds)
        speeds.append((call, core))
    return max(call for call, _ in speeds), max(core for _, core in speeds)


def compare_audits(corpus: Corpus, peer: Peer, text: list[str], count: int) -> None:
    """Whole-word masking by us and by the collator, on the same rows, measured by the same functions."""
    offsets = true_offsets(corpus, text)
    print("whole-word masking of the same rows; words are those found on the text before tokenising\n")
    print(f"{'rows of':>7}  {'':28} {'ours':>10} {'transformers':>13}")
    for length in (512, 128):
        rows = plan_rows(corpus, length)
        order, key = EpochSampler(len(rows.plan), DynamicMasking(), Key.of(1, "bench"))(
            np.arange(min(count, len(rows.plan)))
        )
        sums = np.zeros((2, 7))
        for first in range(0, len(order), 64):
            part, keys = order[first : first + 64], Key(key.state[first : first + 64])
            example = rows.example(part)
            features = row_features(example, length, offsets(rows.addresses(part, example)), corpus.vocab)
            for side, instance in enumerate((WORDS(example, corpus.vocab, keys), peer.instance(example, features))):
                sums[side] += counts(AuditBatch(example, instance, corpus.vocab, keys, np.ones(len(part))))
        for name, values in zip(NAMES, shares(sums), strict=True):
            print(f"{length:>7}  {name:28} {100 * values[0]:>8.2f} % {100 * values[1]:>11.2f} %", flush=True)


NAMES = ("tokens chosen", "rows with nothing masked", "rows more than 80 % masked", "words left half-masked")


def counts(batch: AuditBatch) -> np.ndarray:
    """Tokens, chosen tokens, rows, rows with nothing masked, rows masked almost whole, words touched, words half."""
    example, target = batch.example, batch.instance.targets[0]
    assert isinstance(target, Cloze)
    tokens, chosen, *_ = MaskRate(WholeUnits()).count(batch)
    masked = np.bincount(np.searchsorted(example.rows, target.positions, side="right") - 1, minlength=len(example))
    nothing, whole = (masked == 0).sum(), (masked > 0.8 * example.lengths).sum()
    touched, half = WholeUnitsCheck(UnitKind.WORD, is_checked=True).count(batch)
    return np.array([tokens, chosen, len(example), nothing, whole, touched, half])


def shares(sums: np.ndarray) -> Iterator[np.ndarray]:
    """The four shares, for each side."""
    tokens, chosen, rows, nothing, whole, touched, half = sums.T
    yield from (chosen / tokens, nothing / rows, whole / rows, half / touched)


def plan_rows(corpus: Corpus, length: int) -> Rows:
    return Rows(length, EXAMPLES.plan(corpus, length, Key.of(1, "bench")), corpus)


def parts(rows: Rows) -> Iterator[Ints]:
    """The rows that speed is measured on: the same for every rule and for the peer."""
    order, _ = EpochSampler(len(rows.plan), DynamicMasking(), Key.of(3))(np.arange(ROWS * BATCHES))
    yield from np.split(order, BATCHES)


def best(call: Callable[[int], float], seconds: float) -> float:
    """Million tokens a second: the best of five stretches, so that other work on the machine counts little."""
    call(0)
    found, turn = 0.0, 0
    for _ in range(5):
        done, begun = 0.0, time.process_time()
        while done == 0 or time.process_time() - begun < seconds / 5:
            turn += 1
            done += call(turn)
        found = max(found, done / (time.process_time() - begun))
    return found / 1e6


def on_one_core() -> None:
    """Start again with one thread for every library: they read these settings when they are imported."""
    wanted = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    wanted["TOKENIZERS_PARALLELISM"] = "false"
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        module = sys.modules["__main__"].__spec__.name  # started by python -m
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], {**os.environ, **wanted})


def with_sentinels(vocab: Vocab) -> Vocab:
    """A vocabulary that was prepared without sentinels borrows a hundred ids beyond its end."""
    if len(vocab.sentinels):
        return vocab
    return replace(vocab, sentinels=np.arange(vocab.size, vocab.size + 100, dtype=np.int32), size=vocab.size + 100)


def closely(addresses: Ints) -> Ints:
    """Characters as if every token were one and followed the last."""
    return np.stack([np.maximum(addresses, 0), np.where(addresses < 0, 0, addresses + 1)], axis=1)


def true_offsets(corpus: Corpus, text: list[str]) -> Callable[[Ints], Ints]:
    """The characters that each token of the corpus covers, from its text."""
    encode = Encoder(Tokenizer.load(corpus.folder / "tokenizer.json"))
    found = [encode.encode_text(document.text) for document in stream_documents(text, CollectConfig(), DropCounts())]
    ids = np.concatenate([tokens.ids for tokens in found])
    if not np.array_equal(ids, np.concatenate([shard.ids for shard in corpus.shards])):
        raise SystemExit(f"{', '.join(text)} is not the text that {corpus.folder} was prepared from, in its order")
    table = np.stack([np.concatenate([getattr(t, side) for t in found]) for side in ("starts", "ends")], axis=1)
    return lambda addresses: np.where(addresses[:, None] < 0, 0, table[addresses])


if __name__ == "__main__":
    main()

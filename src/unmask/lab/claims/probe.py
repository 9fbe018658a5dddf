"""Probes of a pre-trained network on held-out text, each a process of its own that prints one line of JSON.

python -m unmask.lab.claims.probe pairs --data FOLDER --out TASKS        task files of segment pairs
python -m unmask.lab.claims.probe subset --data FOLDER --out SMALL --tokens N    a part of a prepared corpus
python -m unmask.lab.claims.probe steps --data FOLDER --arm NAME=WORDS ...       time of a training step
python -m unmask.lab.claims.probe head --run RUN --data FOLDER       accuracy of the row head on segment pairs
python -m unmask.lab.claims.probe far --run RUN --data FOLDER        hidden tokens that are repeated far away
python -m unmask.lab.claims.probe correct --run RUN --data FOLDER    detection and correction of wrong words
python -m unmask.lab.claims.probe border --run RUN --data FOLDER     hidden spans predicted from their borders
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from unmask.core.ragged import positions_in_rows
from unmask.core.records import Ids, Inputs, InputsAndTargets, RowBatch, UnitKind
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.holdout import split_heldout
from unmask.data.corrupt.masking import MaskTokens, Replace, ReplaceBy, WholeUnits
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.lab.claims.border import border_scores
from unmask.lab.claims.probe_data import PAIR_KINDS, fixed_rows, segment_pairs, write_pair_tasks, write_subset
from unmask.lab.claims.step_times import StepTiming, step_times
from unmask.loading.open_model import open_model
from unmask.nets.batch.batch import Batch, collate
from unmask.nets.model import EncoderWithHeads
from unmask.train.batches.recipe_batches import HELDOUT_FRACTION

WRONG_WORDS = {
    "random": MaskTokens(WholeUnits(UnitKind.WORD, rate=1 / 30), Replace(random=1.0, per=ReplaceBy.WORD)),
    "similar": MaskTokens(WholeUnits(UnitKind.WORD, rate=1 / 30), Replace(similar=1.0, per=ReplaceBy.WORD)),
}
"""Two kinds of errors: one word in about thirty is replaced by a random or by a similar word."""
MIN_DISTANCE = 60
"""The distance in tokens of a far repetition; no nearer repetition may exist."""
MAX_FREQUENCY = 1e-3
"""Tokens that are more frequent are left out: their repetition carries no information."""
BATCH_SIZE = 64


@dataclass(frozen=True)
class ProbedModel:
    """A network on its device."""

    model: EncoderWithHeads
    device: torch.device

    @staticmethod
    def open(run: Path) -> ProbedModel:
        """The network of the last checkpoint of a run."""
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return ProbedModel(open_model(run).model.to(device).eval(), device)

    def batches(self, rows: RowBatch, ids: Ids) -> Iterator[Batch]:
        """The rows with other ids, in batches."""
        for first in range(0, len(rows), BATCH_SIZE):
            bounds = rows.rows[first : first + BATCH_SIZE + 1]
            part, offsets = slice(int(bounds[0]), int(bounds[-1])), bounds - bounds[0]
            inputs = Inputs(ids[part], rows.segment[part], rows.document[part], positions_in_rows(offsets), offsets)
            yield collate(InputsAndTargets(inputs, ()), self.device)

    @torch.no_grad()
    def predicted_tokens(self, rows: RowBatch, ids: Ids) -> Ids:
        """The most likely token at every position."""
        head = self.model.lm_head
        assert head is not None, "the probe needs a network with an LM head"
        states = (self.model.network(batch.tokens).last_TD for batch in self.batches(rows, ids))
        return np.concatenate([head(last_TD).argmax(-1).cpu().numpy() for last_TD in states])

    @torch.no_grad()
    def predicted_rows(self, rows: RowBatch) -> Ids:
        """The most likely class of every row."""
        head = self.model.row_head
        assert head is not None, "the probe needs a network with a row head"
        batches = self.batches(rows, rows.ids)
        states = (self.model.network(batch.tokens).last_TD[batch.row_starts_B] for batch in batches)
        return np.concatenate([head(first_BD).argmax(-1).cpu().numpy() for first_BD in states])


def main() -> None:
    """Run one probe from the command line."""
    options = _parse()
    if options.probe == "steps":
        arms = dict(arm.split("=", 1) for arm in options.arm)
        timing = StepTiming(
            options.data, options.size, options.max_length, options.batch_size, options.heldout_fraction
        )
        print(json.dumps(step_times(timing, arms)))
        return
    corpus = Corpus.open(options.data)
    if options.probe == "subset":
        write_subset(corpus, options.tokens, options.out)
        return
    train, heldout = split_heldout(corpus, options.heldout_fraction)
    if options.probe == "pairs":
        tokenizer = Tokenizer.load(options.data / "tokenizer.json")
        write_pair_tasks(train, heldout, tokenizer, options.out, options.max_length, options.rows)
        return
    probed = ProbedModel.open(options.run)
    if options.probe == "border":
        print(json.dumps(border_scores(probed.model, probed.device, train, heldout, options.max_length)))
        return
    probe = {"head": head_scores, "far": far_scores, "correct": correction_scores}[options.probe]
    print(json.dumps(probe(probed, heldout, options.max_length)))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", choices=("pairs", "subset", "steps", "head", "far", "correct", "border"))
    parser.add_argument("--data", type=Path, required=True, help="a prepared folder")
    parser.add_argument("--run", type=Path, help="a run of unmask pretrain")
    parser.add_argument("--out", type=Path, help="pairs, subset: the folder to write")
    parser.add_argument("--rows", type=int, default=4000, help="pairs: training rows")
    parser.add_argument("--tokens", type=int, default=300_000, help="subset: tokens to keep")
    parser.add_argument("--arm", action="append", default=[], help="steps: NAME=WORDS for pretrain, repeatedly")
    parser.add_argument("--size", default="mini", help="steps: size of the network")
    parser.add_argument("--batch-size", type=int, default=64, help="steps: rows in a step")
    parser.add_argument("--max-length", type=int, default=128, help="tokens in a row")
    parser.add_argument("--heldout-fraction", type=float, default=HELDOUT_FRACTION, help="as in pretrain")
    options = parser.parse_args()
    needed = {"pairs": "out", "subset": "out", "steps": "arm"}.get(options.probe, "run")
    if not getattr(options, needed):
        parser.error(f"{options.probe} needs --{needed}")
    return options


def head_scores(probed: ProbedModel, corpus: Corpus, length: int) -> dict[str, float]:
    """Accuracy of the pre-trained row head on both kinds of segment pairs, also the kind it was not trained on."""
    if probed.model.row_head is None:
        return {}
    pairs = {kind: segment_pairs(kind, corpus, length) for kind in PAIR_KINDS}
    return {f"head {k}": float((probed.predicted_rows(rows) == rows.facts[k]).mean()) for k, rows in pairs.items()}


def far_scores(probed: ProbedModel, corpus: Corpus, length: int) -> dict[str, float]:
    """Accuracy on hidden rare tokens that occur once more in the row, at least 60 tokens away."""
    rows = fixed_rows(Packed(DocumentBoundary.NEVER), corpus, length)
    positions = np.array(list(_far_positions(rows, _frequent_tokens(corpus))), dtype=np.int64)
    if not len(positions):
        return {"far": float("nan"), "far n": 0.0}
    masked = rows.ids.copy()
    masked[positions] = corpus.vocab.mask
    is_correct = probed.predicted_tokens(rows, masked)[positions] == rows.ids[positions]
    return {"far": float(is_correct.mean()), "far n": float(len(positions))}


def _frequent_tokens(corpus: Corpus) -> frozenset[int]:
    counts = sum(np.bincount(np.asarray(shard.ids), minlength=corpus.vocab.size) for shard in corpus.shards)
    frequency = np.asarray(counts) / max(int(np.sum(counts)), 1)
    return frozenset(np.flatnonzero(frequency > MAX_FREQUENCY).tolist())


def _far_positions(rows: RowBatch, frequent: frozenset[int]) -> Iterator[int]:
    """At most one position per row: the last token whose only repetition is an earlier one, far enough away."""
    for first, end in zip(rows.rows[:-1].tolist(), rows.rows[1:].tolist(), strict=True):
        last_seen: dict[int, int] = {}
        found = []
        for position in range(first, end):
            token = int(rows.ids[position])
            distance = position - last_seen.get(token, position)
            if distance >= MIN_DISTANCE and not rows.protected[position] and token not in frequent:
                found.append(position)
            last_seen[token] = position
        # A later repetition of the token would be a nearer source.
        without_later = [one for one in found if rows.ids[one] not in rows.ids[one + 1 : end]]
        yield from without_later[-1:]


def correction_scores(probed: ProbedModel, corpus: Corpus, length: int) -> dict[str, float]:
    """Accuracy at wrong words, and F1 of detecting and of correcting them by the most likely token."""
    rows = fixed_rows(Packed(DocumentBoundary.NEVER), corpus, length)
    found: dict[str, float] = {}
    for name, corruption in WRONG_WORDS.items():
        if corruption.replace.similar and not len(corpus.vocab.similar_words):
            continue
        key = Key.of(0, "claims", "wrong").fold_in(np.arange(len(rows)))
        corrupted = corruption(rows, corpus.vocab, key).inputs.ids
        wrong = np.flatnonzero(corrupted != rows.ids)
        predicted = probed.predicted_tokens(rows, corrupted)
        changed = np.flatnonzero((predicted != corrupted) & ~rows.protected)
        corrected = changed[predicted[changed] == rows.ids[changed]]
        found[f"accuracy, {name}"] = float((predicted[wrong] == rows.ids[wrong]).mean())
        found[f"detection, {name}"] = _f1(len(np.intersect1d(changed, wrong)), len(changed), len(wrong))
        found[f"correction, {name}"] = _f1(len(np.intersect1d(corrected, wrong)), len(changed), len(wrong))
    return found


def _f1(num_correct: int, num_predicted: int, num_true: int) -> float:
    return 2 * num_correct / max(num_predicted + num_true, 1)


if __name__ == "__main__":
    main()

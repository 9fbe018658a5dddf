"""Probes for the claims: what a network can do that was trained in one way or another.

    python bench/claims_probe.py pairs --data FOLDER --out tasks          task files: are two segments consecutive?
    python bench/claims_probe.py cut --data FOLDER --out SMALL --tokens N  a prepared folder with a part of the text
    python bench/claims_probe.py steps --data FOLDER --arm NAME=WORDS …   how long a step takes, when nothing else runs
    python bench/claims_probe.py head --run RUN --data FOLDER             the network's own head on both kinds of pairs
    python bench/claims_probe.py far --run RUN --data FOLDER              a hidden token that stands far away once more
    python bench/claims_probe.py correct --run RUN --data FOLDER          wrong characters found and put right
    python bench/claims_probe.py border --run RUN --data FOLDER           hidden spans, said from the tokens around them

What arrives: a prepared corpus, and mostly a run of `unmask pretrain` on it. What leaves: files, or one line of JSON,
mostly with shares between 0 and 1.
What never happens here: text that a network has learned from. All probes read the documents that were held out; the
task files teach with the others, and are judged by those.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from claims_border import border
from claims_steps import step_times
from claims_text import cut

from unmask.core.ragged import positions_in_rows
from unmask.core.records import Ids, Inputs, InputsAndTargets, RowBatch, UnitKind
from unmask.core.rng import Key, permuted_index
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.holdout import split_heldout
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.corrupt.replacement import Replace, ReplaceBy
from unmask.data.corrupt.selection import WholeUnits
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.input_formats.row_plan import InputFormat, build_rows
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.loading.open_model import open_model
from unmask.nets.batch.batch import Batch, collate
from unmask.nets.model import EncoderWithHeads
from unmask.train.batches.recipe_batches import HELDOUT_FRACTION

KINDS = {"next": Negative.RANDOM, "order": Negative.SWAPPED}
WRONG = {
    "random": MaskTokens(WholeUnits(UnitKind.WORD, rate=1 / 30), Replace(random=1.0, per=ReplaceBy.WORD)),
    "similar": MaskTokens(WholeUnits(UnitKind.WORD, rate=1 / 30), Replace(similar=1.0, per=ReplaceBy.WORD)),
}
"""Two kinds of mistakes in a text, scattered over its words."""
FAR = 60
"""A token that stands so far away, and nowhere nearer, helps only who looks that far."""
RARE = 1e-3
"""The most common token that counts: of others a second one says nothing."""
MOST_ROWS = 2000
BATCH = 64


@dataclass(frozen=True)
class Opened:
    """A network on its device."""

    model: EncoderWithHeads
    device: torch.device

    @staticmethod
    def of(run: Path) -> Opened:
        """The last network of a run."""
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return Opened(open_model(run).model.to(device).eval(), device)

    def batches(self, example: RowBatch, ids: Ids) -> Iterator[tuple[slice, Batch]]:
        """The rows of an example with other ids, in batches, each with the tokens that it holds."""
        for first in range(0, len(example), BATCH):
            rows = example.rows[first : first + BATCH + 1]
            part = slice(int(rows[0]), int(rows[-1]))
            begin = rows - rows[0]
            inputs = Inputs(ids[part], example.segment[part], example.document[part], positions_in_rows(begin), begin)
            yield part, collate(InputsAndTargets(inputs, ()), self.device)

    @torch.no_grad()
    def said(self, example: RowBatch, ids: Ids) -> Ids:
        """The likeliest token at every position."""
        assert self.model.lm_head is not None, "a network without a head for tokens says none"
        found = [
            self.model.lm_head(self.model.network(batch.tokens).last_TD).argmax(-1).cpu().numpy()
            for _, batch in self.batches(example, ids)
        ]
        return np.concatenate(found)

    @torch.no_grad()
    def judged(self, example: RowBatch) -> Ids:
        """What the head for rows says of every row."""
        assert self.model.row_head is not None, "a network without a head for rows says nothing of them"
        found = [
            self.model.row_head(self.model.network(batch.tokens).last_TD[batch.row_starts_B]).argmax(-1).cpu().numpy()
            for _, batch in self.batches(example, example.ids)
        ]
        return np.concatenate(found)


def main() -> None:
    wish = _wishes()
    if wish.probe == "steps":
        print(json.dumps(step_times(wish)))
        return
    corpus = Corpus.open(wish.data)
    if wish.probe == "cut":
        cut(corpus, wish.tokens, wish.out)
        return
    learn, judge = split_heldout(corpus, wish.held_out)
    if wish.probe == "pairs":
        _pairs(wish, learn, judge)
        return
    network = Opened.of(wish.run)
    if wish.probe == "border":
        print(json.dumps(border(network.model, network.device, learn, judge, wish.length)))
        return
    probe = {"head": _head, "far": far, "correct": correct}[wish.probe]
    print(json.dumps(probe(network, judge, wish.length)))


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", choices=("pairs", "cut", "steps", "head", "far", "correct", "border"))
    parser.add_argument("--data", type=Path, required=True, help="a prepared folder")
    parser.add_argument("--run", type=Path, help="a run of unmask pretrain")
    parser.add_argument("--out", type=Path, help="pairs, cut: the folder to make")
    parser.add_argument("--rows", type=int, default=4000, help="pairs: rows to learn from")
    parser.add_argument("--tokens", type=int, default=300_000, help="cut: how many to keep")
    parser.add_argument("--arm", action="append", default=[], help="steps: NAME=WORDS for pretrain, repeatedly")
    parser.add_argument("--size", default="mini", help="steps: of the network")
    parser.add_argument("--batch", type=int, default=64, help="steps: rows in a step")
    parser.add_argument("--length", type=int, default=128, help="most tokens in a row")
    parser.add_argument("--held-out", type=float, default=HELDOUT_FRACTION, help="as in pretrain")
    wish = parser.parse_args()
    needed = {"pairs": "out", "cut": "out", "steps": "arm"}.get(wish.probe, "run")
    if not getattr(wish, needed):
        parser.error(f"{wish.probe} needs --{needed}")
    return wish


def rows_of(examples: InputFormat, corpus: Corpus, length: int, most: int = MOST_ROWS) -> RowBatch:
    """Rows of a corpus with nothing hidden, always the same ones, in a drawn order."""
    key = Key.of(0, "claims", length)
    plan = examples.plan(corpus, length, key)
    chosen = permuted_index(np.arange(min(len(plan), most)), len(plan), key.fold_in("some"))
    return build_rows(corpus, plan, chosen, examples.template, corpus.vocab)


def _pairs(wish: argparse.Namespace, learn: Corpus, judge: Corpus) -> None:
    """Two texts a line, and whether the second follows the first. Random ones come from another document."""
    tokenizer = Tokenizer.load(wish.data / "tokenizer.json")
    wish.out.mkdir(parents=True, exist_ok=True)
    for name, negative in KINDS.items():
        for part, corpus, most in (("train", learn, wish.rows), ("dev", judge, MOST_ROWS)):
            example = rows_of(SegmentPairs(negative, short_fraction=0.0), corpus, wish.length, most)
            lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(example, name, tokenizer))
            (wish.out / f"{name}.{part}.jsonl").write_text(lines, encoding="utf-8")
            print(f"{wish.out / name}.{part}.jsonl: {len(example):,} pairs", flush=True)


def _lines(example: RowBatch, fact: str, tokenizer: Tokenizer) -> Iterator[dict[str, str]]:
    for row, value in enumerate(example.facts[fact].tolist()):
        part = slice(int(example.rows[row]), int(example.rows[row + 1]))
        ids, segment, text = example.ids[part], example.segment[part], ~example.protected[part]
        texts = (tokenizer.decode(ids[text & (segment == number)]) for number in (0, 1))
        yield dict(zip(("text_a", "text_b"), texts, strict=True)) | {"label": ("consecutive", "not")[value]}


def _head(network: Opened, corpus: Corpus, length: int) -> dict[str, float]:
    """How often the network's own head is right, on the pairs that it was trained on and on the others."""
    found: dict[str, float] = {}
    if network.model.row_head is None:
        return found
    for name, negative in KINDS.items():
        example = rows_of(SegmentPairs(negative, short_fraction=0.0), corpus, length)
        found[f"head {name}"] = float((network.judged(example) == example.facts[name]).mean())
    return found


def far(network: Opened, corpus: Corpus, length: int) -> dict[str, float]:
    """How often a hidden rare token is said that stands once more in the row, at least 60 tokens away."""
    example = rows_of(Packed(DocumentBoundary.NEVER), corpus, length)
    places = np.array(list(_far_places(example, _common(corpus))), dtype=np.int64)
    if not len(places):
        return {"far": float("nan"), "far n": 0.0}
    shown = example.ids.copy()
    shown[places] = corpus.vocab.mask
    right = network.said(example, shown)[places] == example.ids[places]
    return {"far": float(right.mean()), "far n": float(len(places))}


def _common(corpus: Corpus) -> frozenset[int]:
    counts = sum(np.bincount(np.asarray(shard.ids), minlength=corpus.vocab.size) for shard in corpus.shards)
    shares = np.asarray(counts) / max(int(np.sum(counts)), 1)
    return frozenset(np.flatnonzero(shares > RARE).tolist())


def _far_places(example: RowBatch, common: frozenset[int]) -> Iterator[int]:
    """One place of each row: the last token that stood before, far enough, and nowhere nearer."""
    for first, end in zip(example.rows[:-1].tolist(), example.rows[1:].tolist(), strict=True):
        last: dict[int, int] = {}
        found = []
        for place in range(first, end):
            token = int(example.ids[place])
            if place - last.get(token, place) >= FAR and not example.protected[place] and token not in common:
                found.append(place)
            last[token] = place
        # Where the same token comes again soon after, it would be seen there.
        alone = [place for place in found if example.ids[place] not in example.ids[place + 1 : end]]
        yield from alone[-1:]


def correct(network: Opened, corpus: Corpus, length: int) -> dict[str, float]:
    """One wrong word in about thirty: which tokens are found, and which are put right, by the likeliest token.

    Wrong words are drawn from the whole vocabulary, and once more from those that are similar to the right one.
    """
    example = rows_of(Packed(DocumentBoundary.NEVER), corpus, length)
    found: dict[str, float] = {}
    for name, wrong in WRONG.items():
        if wrong.replace.similar and not len(corpus.vocab.similar_words):
            continue
        key = Key.of(0, "claims", "wrong").fold_in(np.arange(len(example)))
        shown = wrong(example, corpus.vocab, key).inputs.ids
        truly = np.flatnonzero(shown != example.ids)
        said = network.said(example, shown)
        changed = np.flatnonzero((said != shown) & ~example.protected)
        right = changed[said[changed] == example.ids[changed]]
        found[f"at the place, {name}"] = float((said[truly] == example.ids[truly]).mean())
        found[f"detection, {name}"] = _f1(len(np.intersect1d(changed, truly)), len(changed), len(truly))
        found[f"correction, {name}"] = _f1(len(np.intersect1d(right, truly)), len(changed), len(truly))
    return found


def _f1(hits: int, said: int, true: int) -> float:
    return 2 * hits / max(said + true, 1)


if __name__ == "__main__":
    main()

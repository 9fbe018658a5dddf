"""What papers claimed, tried again at the size that a small machine allows: one claim, its arms, seeds and a verdict.

    python bench/claims.py sop --data FOLDER --out runs/claims
    python bench/claims.py all-tokens --data FOLDER --out runs/claims --task reviews=train.jsonl:dev.jsonl --flops 5e14
    python bench/claims.py spans --data FOLDER --out runs/claims --task cmrc=train.json:dev.json --at-once 9
    python bench/claims.py masking --data FOLDER --out runs/claims --cut 300000

Every arm is a command line of `unmask pretrain`, with the same text, budget, rows, descent and seeds; every measurement
is one of `unmask tune` or `claims_probe.py`. Without a budget every network learns from 30 million tokens, or has 6e14
FLOPs where the claim is about these: with `--size mini` and fifteen at once some minutes on a GPU. What is finished is
not made again; the same line goes on, also after `--minutes`.

A claim is borne out if its sign holds in every seed, or if the mean of the paired differences is more than two standard
errors from zero. Prints mean, least and most of every measurement, the verdicts, and the published figures beside them;
writes `CLAIM/claims.json` with everything. A small run that does not bear a claim out says so; it does not refute a
large one.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from claims_jobs import BUDGETS, Bench, Entry, Work
from claims_list import CLAIMS, Claim
from claims_verdict import Measured, tables, verdicts

AGAIN = 2.0
"""Epochs after which text is known, so that a loss may have been lower before."""


def main() -> None:
    wish = _wishes()
    claim = CLAIMS[wish.claim]
    out = wish.out / wish.claim
    arms = wish.arms.split(",") if wish.arms else list(claim.arms)
    entries = [
        Entry(arm, claim.arms[arm], seed, out / f"{arm}-{seed}")
        for seed in range(wish.first_seed, wish.first_seed + wish.seeds)
        for arm in arms
    ]
    bench = Bench(claim, wish, out)
    Work(bench, wish.at_once, time.monotonic() + 60 * wish.minutes).all(entries)
    found = measured(entries, out)
    lines = list(verdicts(claim, found))
    budget = next(f"{float(getattr(wish, name)):,g} {name}" for name in BUDGETS if getattr(wish, name) is not None)
    _tell(
        claim, arms, found, lines, f"{wish.size}, rows of {wish.length} tokens, {wish.batch} in a step, {budget} each"
    )
    told = {"claim": wish.claim, "says": claim.says, "published": claim.published, "budget": budget, "verdicts": lines}
    values = {one.name: {arm: dict(seeds) for arm, seeds in one.values.items()} for one in found}
    whole = {**told, "words": sys.argv[1:], "measured": values, "curves": {e.folder.name: _curve(e) for e in entries}}
    out.mkdir(parents=True, exist_ok=True)
    (out / "claims.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claim", choices=sorted(CLAIMS))
    parser.add_argument("--data", type=Path, required=True, help="a prepared folder")
    parser.add_argument("--out", type=Path, required=True)
    budget = parser.add_mutually_exclusive_group()
    for name in BUDGETS:
        budget.add_argument(f"--{name}", help="the budget of every arm; usual: 30 million tokens, or 6e14 FLOPs")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--length", type=int, default=128, help="tokens in a row, in all of training")
    parser.add_argument("--batch", type=int, default=64, help="rows in a step")
    parser.add_argument("--words", default="", help="more words for every pretrain")
    parser.add_argument("--tune-words", default="--epochs 3 --rate 1e-4", help="words for every full tune")
    parser.add_argument("--task", action="append", default=[], help="NAME=TRAIN:DEV[:words for tune], repeatedly")
    parser.add_argument("--arms", default="", help="only these, with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--cut", type=int, help="learn from about so many tokens, again and again; 0: from all of them")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="then stop, and print what there is; the same line goes on"
    )
    wish = parser.parse_args()
    _check(parser, wish, CLAIMS[wish.claim])
    return wish


def _check(parser: argparse.ArgumentParser, wish: argparse.Namespace, claim: Claim) -> None:
    """Refuse what cannot be tried, and fill in the budget."""
    if claim.tasks and not wish.task:
        parser.error(f"{wish.claim} is measured on tasks of yours: give --task NAME=TRAIN:DEV. {claim.tasks}")
    for task in wish.task:
        missing = [path for path in task.partition("=")[2].split(":")[:2] if not Path(path).is_file()]
        if missing or task.count(":") < 1:
            parser.error(f"--task needs NAME=TRAIN:DEV with two files; found {task}")
    unknown = set(wish.arms.split(",")) - {"", *claim.arms}
    if unknown:
        parser.error(f"{wish.claim} has the arms {', '.join(claim.arms)}; found {', '.join(sorted(unknown))}")
    wish.cut = claim.cut if wish.cut is None else wish.cut
    if all(getattr(wish, name) is None for name in BUDGETS):
        name, value = ("flops", f"{claim.flops:g}") if claim.flops else ("tokens", str(claim.tokens))
        setattr(wish, name, value)
    if claim.flops and wish.flops is None:
        print("note: this claim is about equal FLOPs, so take --flops; equal steps favour the arm with a generator.")


def measured(entries: Sequence[Entry], out: Path) -> list[Measured]:
    """Everything that is known of all entries, by what was measured."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for entry in entries:
        for name, value in _known(entry):
            found.setdefault(name, {}).setdefault(entry.arm, {})[entry.seed] = value
    timed = json.loads((out / "steps.json").read_text(encoding="utf-8")) if (out / "steps.json").exists() else {}
    rounds = {name: {arm: dict(enumerate(said)) for arm, said in arms.items()} for name, arms in timed.items()}
    return [
        *(Measured(name, values) for name, values in found.items()),
        *(Measured(name, values, "rounds") for name, values in rounds.items()),
    ]


def _known(entry: Entry) -> Iterator[tuple[str, float]]:
    if not (entry.network / "finished.json").exists():
        return
    run = json.loads((entry.network / "run.json").read_text(encoding="utf-8"))
    lines = _record(entry)
    steps = [line for line in lines if line["kind"] == "step"]
    trials = [line for line in lines if line["kind"] == "eval"]
    yield "parameters", run["parameters"]
    yield "steps", steps[-1]["step"]
    yield "tokens, millions", steps[-1]["tokens"] / 1e6
    epochs = steps[-1]["tokens"] / run["corpus"]["tokens"] / (1 - run["held_out"])
    yield "epochs", epochs
    yield "ms a step, shared", 1000 * _median_gap([line["seconds"] for line in steps])
    for name, loss in trials[-1]["loss"].items():
        yield f"{name} loss", loss
        yield f"{name} right", trials[-1]["accuracy"][name]
        if epochs >= AGAIN:
            best = min(trials, key=lambda line, name=name: line["loss"][name])
            yield f"{name} least loss", best["loss"][name]
            yield f"  after epochs, {name}", epochs * best["step"] / steps[-1]["step"]
    for path in sorted(entry.folder.glob("probe-*.json")):
        yield from json.loads(path.read_text(encoding="utf-8")).items()
    for path in sorted(entry.folder.glob("tuned-*/task.json")):
        said = json.loads(path.read_text(encoding="utf-8"))
        score = said["metrics"][said["metric"]]
        yield path.parent.name.removeprefix("tuned-"), math.nan if score is None else score


def _record(entry: Entry) -> list[dict[str, Any]]:
    path = entry.network / "record.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _curve(entry: Entry) -> list[dict[str, Any]]:
    """The trials of a run, for a picture; also of one that was stopped."""
    keys = ("step", "tokens", "loss", "accuracy")
    return [{key: line[key] for key in keys} for line in _record(entry) if line["kind"] == "eval"]


def _median_gap(seconds: Sequence[float]) -> float:
    gaps = [after - before for before, after in pairwise(seconds)]
    return statistics.median(gaps) if gaps else math.nan


def _tell(claim: Claim, arms: Sequence[str], found: Sequence[Measured], lines: Sequence[str], scale: str) -> None:
    print(f"\n{textwrap.fill(claim.says, 80)}\n\n{textwrap.fill(f'published: {claim.published}', 80)}")
    print("  there: networks of base size, and hundreds of times as many tokens or more")
    print(f"  here:  {scale}\n")
    for line in (*tables(arms, found), ""):
        print(line)
    for line in lines:
        print(textwrap.fill(line, 80, subsequent_indent="  "))


if __name__ == "__main__":
    main()

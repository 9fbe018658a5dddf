"""Does pre-training help? One member on real text, then its tasks, beside the same network from scratch.

    python -m experiments.long_runs --text wiki.jsonl.gz --task sst2=train.jsonl.gz:dev.jsonl.gz --minutes 10 --out runs/en

Prepares the text, pre-trains for some minutes, then tunes with several seeds from the pre-trained and from newly drawn
weights, and prints means and spreads. Every step is the command that a user would type; all of them go on where they
were if the script is started again. Writes `table.json`, the record and the report into OUT.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main() -> None:
    wish = _wishes()
    out: Path = wish.out
    out.mkdir(parents=True, exist_ok=True)
    _unmask(
        out / "prepare.log", f"prepare {' '.join(wish.text)} --for {wish.member} --out {out / 'data'} {wish.prepare}"
    )
    _unmask(
        out / "pretrain.log",
        f"pretrain {wish.member} --size {wish.size} --data {out / 'data'} --out {out / 'run'} "
        f"--hours {wish.minutes / 60:.6f} {wish.pretrain}",
    )
    table = {"pretrain": _pretrained(out / "run"), "tasks": _tasks(wish, out)}
    _unmask(out / "report.log", f"report {out / 'run'}")
    (out / "table.json").write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", nargs="+", required=True, help="what `unmask prepare` reads")
    parser.add_argument("--task", action="append", default=[], help="NAME=TRAIN:DEV, more than once")
    parser.add_argument("--member", default="bert")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--prepare", default="", help="further words for `unmask prepare`")
    parser.add_argument("--pretrain", default="", help="further words for `unmask pretrain`")
    parser.add_argument(
        "--finetune", default="--epochs 3 --lr 3e-4 --max-length 128", help="options of `unmask finetune`"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=1, help="tunings that share the machine")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def _unmask(log: Path, words: str) -> None:
    """Run a command, its output into a file; what it said last is printed if it fails."""
    print(f"$ unmask {words}", flush=True)
    with log.open("a", encoding="utf-8") as file:
        done = subprocess.run(
            [sys.executable, "-m", "unmask", *shlex.split(words)], stdout=file, stderr=file, check=False
        )
    if done.returncode:
        print(log.read_text(encoding="utf-8")[-2000:])
        sys.exit(f"unmask {shlex.split(words)[0]} ended with {done.returncode}")


def _pretrained(run: Path) -> dict[str, object]:
    """The end of the run, and the guesser that knows only frequencies."""
    lines = [json.loads(line) for line in (run / "record.jsonl").read_text(encoding="utf-8").splitlines()]
    trials = [line for line in lines if line["kind"] == "eval"]
    steps = [line for line in lines if line["kind"] == "step"]
    said = next(
        line for line in (run.parent / "pretrain.log").read_text(encoding="utf-8").splitlines() if "loses" in line
    )
    entropy = float(said.rsplit(" ", 1)[1].rstrip("."))
    found = {
        "steps": steps[-1]["step"],
        "tokens": steps[-1]["tokens"],
        "tokens_per_second": statistics.median(line["tokens_per_second"] for line in steps),
        "minutes": steps[-1]["seconds"] / 60,
        "unigram_entropy": entropy,
        "held_out": [{"step": line["step"], "loss": line["loss"], "accuracy": line["accuracy"]} for line in trials],
    }
    print(f"{found['steps']:,} steps, {found['tokens']:,} tokens, {found['tokens_per_second']:,.0f} tokens/s (median)")
    for line in trials:
        print(
            f"  step {line['step']:>7,}  held out  "
            + "  ".join(f"{name} {loss:.3f}" for name, loss in line["loss"].items())
        )
    print(f"  unigram entropy of the corpus {entropy:.3f} nats", flush=True)
    return found


def _tasks(wish: argparse.Namespace, out: Path) -> dict[str, object]:
    jobs = [(task, scratch, seed) for task in wish.task for scratch in (False, True) for seed in range(wish.seeds)]

    def one(job: tuple[str, bool, int]) -> None:
        task, scratch, seed = job
        name, _, files = task.partition("=")
        learn, _, judge = files.partition(":")
        folder = _folder(out, name, scratch, seed)
        _unmask(
            folder.with_suffix(".log"),
            f"finetune {out / 'run'} --train-file {learn} --dev-file {judge} --out {folder} --seed {seed} {wish.finetune}"
            + (" --from-scratch" if scratch else ""),
        )

    with ThreadPoolExecutor(wish.at_once) as pool:
        list(pool.map(one, jobs))
    table: dict[str, object] = {}
    print(f"\n{'task':18s} {'metric':10s} {'pre-trained':>18s} {'from scratch':>18s} {'gain':>8s}  every seed apart")
    for task in wish.task:
        name = task.partition("=")[0]
        table[name] = _compared(out, name, wish.seeds)
    return table


def _folder(out: Path, name: str, scratch: bool, seed: int) -> Path:
    return out / f"{name}-{'scratch' if scratch else 'tuned'}-{seed}"


def _compared(out: Path, name: str, seeds: int) -> dict[str, object]:
    """Both sides of one task: mean, standard deviation, and whether the worst of one beats the best of the other."""
    sides = []
    for scratch in (False, True):
        found = [json.loads((_folder(out, name, scratch, seed) / "task.json").read_text()) for seed in range(seeds)]
        metric = "accuracy" if "accuracy" in found[0]["metrics"] else "spearman"
        sides.append([float(one["metrics"][metric] or math.nan) for one in found])
    tuned, scratch_ = sides
    apart = min(tuned) > max(scratch_)
    told = [f"{statistics.mean(side):.4f} ± {statistics.stdev(side) if len(side) > 1 else 0:.4f}" for side in sides]
    gain = statistics.mean(tuned) - statistics.mean(scratch_)
    print(f"{name:18s} {metric:10s} {told[0]:>18s} {told[1]:>18s} {gain:+8.4f}  {'yes' if apart else 'no'}", flush=True)
    return {"metric": metric, "tuned": tuned, "scratch": scratch_, "apart": apart}


if __name__ == "__main__":
    main()

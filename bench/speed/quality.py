r"""Time to quality: how soon `unmask pretrain` has the held-out loss that a compiled `transformers` loop ends with.

    python -m bench.speed.quality --data FOLDER --size base --out runs/quality
    python -m bench.speed.quality --data FOLDER --size tiny --length 64 --our-rows 16 --their-rows 16 --their-loaders 1 \
        --their-minutes 0.3 --our-minutes 0.3 --try-minutes 0.1 --trials 3 --no-compile --out q            (a check)

What arrives: a prepared corpus. What leaves: `quality.json`, `quality.svg` (both curves) and a line with the ratio.
First `unmask pretrain` runs as a user would type it: BERT's network, masked tokens alone, a document a row, the descent
of `--preset short`. Then `BertForMaskedLM` learns from the same text in the way of its examples: rows filled across documents,
`DataCollatorForLanguageModeling` in worker processes, AdamW with warm-up and linear decay, bfloat16, compiled;
it takes the one of `--their-rates` that is best after its first minute, for which it begins once more.
What never happens here: two ways to judge. Both are judged on the same held-out rows with the same masks. These rows
are of the kind that ours learns from, a document a row; so both are judged once more at their ends on rows that run on,
as theirs has learned from them, ours as `unmask export` hands it to `transformers`. Their clock
stands still while they are judged and while code is compiled; ours, the run's own, goes on while it is judged and while
steps are recorded, and begins when the program has started.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import torch
from transformers import BertForMaskedLM

from bench.speed.quality_judged import Curve, judged, running_on
from bench.speed.quality_theirs import Wish, learn
from unmask.core.codec import decode
from unmask.data.corpus.corpus import Corpus
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RecipeBatches
from unmask.train.rundir.folder import read_run

TASK = "--set=stages.*.tasks.0."
WORDS = f"--preset short --set=masking=DynamicMasking() {TASK}examples=Packed(join=never) {TASK}objectives=MLM()"


def main() -> None:
    wish = _wishes()
    wish.out.mkdir(parents=True, exist_ok=True)
    ours, theirs = _ours(wish), Wish.of(wish)
    run = read_run(wish.out / "ours")
    recipe = decode(run["recipe"], Recipe)
    lessons = RecipeBatches.of(recipe, Corpus.open(wish.data), run["seed"], run["held_out"])
    trial, exported = running_on(wish.data, lessons.heldout[0].corpus, wish.length), _exported(wish)
    learned = learn(lessons, theirs)
    told: dict[str, object] = {"ours": ours, "theirs": learned.curve, "words": sys.argv[1:]}
    peer = "transformers, compiled" if wish.compile else "transformers"
    (wish.out / "quality.json").write_text(json.dumps(told, indent=1))
    (wish.out / "quality.svg").write_text(drawn({"unmask": ours, peer: learned.curve}), encoding="utf-8")
    print(verdict(ours, learned.curve), flush=True)
    model = BertForMaskedLM.from_pretrained(exported, attn_implementation="sdpa").to(theirs.device)
    running = judged(replace(learned.theirs, model=model), trial), judged(learned.theirs, trial)
    (wish.out / "quality.json").write_text(json.dumps(told | {"on rows that run on": running}, indent=1))
    print(
        f"on held-out rows that run on, with their masks: ours {running[0]:.3f} after {ours[-1][0]:.0f} s, "
        f"transformers {running[1]:.3f} after {learned.curve[-1][0]:.0f} s"
    )


def verdict(ours: Curve, theirs: Curve) -> str:
    """What theirs has at its end, and when ours had it."""
    end, goal = theirs[-1]
    there = next((second for second, loss in ours if loss <= goal), None)
    said = f"transformers: held-out loss {goal:.3f} after {end:.0f} s; "
    if there is None:
        return f"{said}ours had not reached it after {ours[-1][0]:.0f} s: {min(loss for _, loss in ours):.3f}"
    return f"{said}ours reached it after {there:.0f} s, {end / there:.2f} times as fast"


def _ours(wish: argparse.Namespace) -> Curve:
    """Our curve; a run that was made already is read."""
    out = wish.out / "ours"
    words = (
        f"pretrain bert --size {wish.size} --data {wish.data} --out {out} --hours {wish.our_minutes / 60:.6f} "
        f"--num-evals {wish.trials} --device {wish.device} {WORDS} --set=stages.*.max_length={wish.length} "
        f"--batch-size {wish.our_rows} {wish.our_words}"
    )
    _unmask(words)
    lines = [json.loads(line) for line in (out / "record.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(line["seconds"], line["loss"]["mlm"]) for line in lines if line["kind"] == "eval"]


def _exported(wish: argparse.Namespace) -> Path:
    """What ours has learned at its end, as `transformers` reads it."""
    folder: Path = wish.out / "exported"
    if not folder.exists():
        _unmask(f"export {wish.out / 'ours'} {folder}")
    return folder


def _unmask(words: str) -> None:
    print(f"$ unmask {words}", flush=True)
    subprocess.run([sys.executable, "-m", "unmask", *shlex.split(words)], check=True)


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 340, 48, 20, 24, 42
COLOURS = ("#0072b2", "#d55e00")
ROUND = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600)
"""Seconds between two marks."""


def drawn(curves: dict[str, Curve]) -> str:
    """Both curves over the seconds, as an SVG."""
    most = max(x for curve in curves.values() for x, _ in curve)
    low = min(y for curve in curves.values() for _, y in curve) - 0.2
    high = max(y for curve in curves.values() for _, y in curve) + 0.2

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            round(LEFT + x / most * (WIDTH - LEFT - RIGHT), 1),
            round(TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM), 1),
        )

    parts = [f'<text x="{LEFT}" y="14">held-out loss of masked tokens, nats</text>']
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">seconds of training</text>')
    for level in range(int(low) + 1, int(high) + 1):
        _, y = place(0, level)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{level}</text>')
    apart = next(step for step in (*ROUND, most) if most / step < 8)
    for number in range(int(most / apart) + 1):
        x, _ = place(apart * number, low)
        parts.append(f'<text x="{x}" y="{HEIGHT - 24}" text-anchor="middle">{apart * number:.0f}</text>')
    for turn, ((name, curve), colour) in enumerate(zip(curves.items(), COLOURS, strict=True)):
        path = " ".join(f"{x},{y}" for x, y in (place(*point) for point in curve))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{TOP + 16 * (turn + 1)}" text-anchor="end" style="fill:{colour}">')
        parts.append(f"{name}: {curve[-1][1]:.3f} after {curve[-1][0]:.0f} s</text>")
    style = "text{font:13px system-ui,sans-serif;fill:#667}.g{stroke:#99a3;stroke-width:1}"
    body = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"><style>{style}</style>'
    return f"{head}\n{body}\n</svg>\n"


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="a prepared corpus")
    parser.add_argument("--size", default="base")
    parser.add_argument("--length", type=int, default=128, help="most tokens in a row, on both sides")
    parser.add_argument("--their-minutes", type=float, default=5.0)
    parser.add_argument("--their-rates", type=float, nargs="+", default=[1e-4, 2e-4, 4e-4], help="the best is taken")
    parser.add_argument(
        "--try-minutes", type=float, default=1.0, help="how long each of their rates is tried, in the same descent"
    )
    parser.add_argument("--their-rows", type=int, default=512, help="rows in a step")
    parser.add_argument("--their-loaders", type=int, default=4, help="processes that mask rows")
    parser.add_argument(
        "--their-mask", choices=("ones", "none", "faster"), default="faster", help="the mask that it is given"
    )
    parser.add_argument("--our-minutes", type=float, default=2.0)
    parser.add_argument("--our-rows", type=int, default=512, help="rows in a step")
    parser.add_argument("--our-words", default="", help="more words for `unmask pretrain`")
    parser.add_argument("--trials", type=int, default=20, help="how often both are judged")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()

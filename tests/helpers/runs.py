"""Run folders for the tests of drawing. Their numbers are made up; only their form is real."""

from __future__ import annotations

import json
from math import exp
from pathlib import Path

import numpy as np

from unmask.core.codec import encode, fingerprint
from unmask.members import member

SHOWN = [
    "[CLS]",
    "今",
    "天",
    "天",
    "[MASK]",
    "很",
    "好",
    "，",
    "我",
    "们",
    "去",
    "公",
    "[MASK]",
    "看",
    "花",
    "。",
    "[SEP]",
]
TRUTH = {"4": "气", "12": "园"}


def head(recipe=None, **changes):
    """A `run.json`."""
    recipe = recipe or member("bert", "tiny")
    corpus = {"folder": "data/gone", "manifest": "0" * 32, "documents": 18_995, "tokens": 1_840_000}
    return {
        "unmask": "0.1.0",
        "kind": "pretrain",
        "recipe": encode(recipe),
        "fingerprint": fingerprint(recipe),
        "budget": {"steps": 1000},
        "seed": 7,
        "corpus": corpus,
        "tokenizer": "0" * 32,
        "from": "",
        "parameters": 4_385_920,
        "vocabulary": 8000,
        "positions": 512,
        **changes,
    }


def start(step=0, device="cpu"):
    return {"kind": "start", "step": step, "device": device, "precision": "float32", "processes": 1,
    "microbatch_tokens": 32,
            "compile": False, "torch": "2.13.0", "time": "2026-11-15T10:00:00"}  # fmt: skip


def step(number, of=1000, noise=0.0, speed=1.0, floor=2.4):
    share = number / of
    mlm = floor + 6.5 * exp(-6 * share) + noise
    length = 128 if share <= 0.9 else 512
    return {
        "kind": "step", "step": number, "progress": share, "task": "cloze", "length": length,
        "loss": {"mlm": mlm, "next": 0.35 + 0.34 * exp(-4 * share) + noise / 4},
        "accuracy": {"mlm": 0.5 * (1 - exp(-5 * share)), "next": 0.85 - 0.35 * exp(-4 * share)},
        "count": {"mlm": 612, "next": 32}, "lr": 1e-4 * min(share * 10, (1 - share) / 0.9),
        "grad_norm": 1.4 + abs(noise) * 3 + 4 * exp(-20 * share), "tokens": number * 4096, "padding_fraction": 0.03,
        "masked_fraction": 0.15, "tokens_per_second": (5200 if length == 128 else 3900) * speed + 800 * noise,
        "seconds": number * 0.8,
    }  # fmt: skip


def trial(number, of=1000, floor=2.5):
    line = step(number, of, floor=floor)
    return {name: line[name] for name in ("step", "loss", "accuracy", "count", "tokens", "seconds")} | {"kind": "eval"}


def sample(number, of=1000):
    sure = round(number / of, 4)
    guesses = {
        "4": [["气", sure], ["的", 0.11], ["下", 0.05]] if sure > 0.2 else [["的", 0.05], ["，", 0.04], ["气", 0.01]],
        "12": [["园", sure], ["司", 0.1], ["里", 0.02]] if sure > 0.6 else [["司", 0.2], ["里", 0.1], ["安", 0.05]],
    }
    return {"kind": "samples", "step": number, "lines": [{"shown": SHOWN, "truth": TRUTH, "guesses": guesses}]}


def record(steps=300, every=50, resumes=(), of=None, seed=1, speed=1.0, floor=2.4):
    """All lines of a run, taken up again after the given steps."""
    of = of or steps
    noise = np.random.default_rng(seed).normal(0, 0.25, steps + 1).tolist()
    lines = [start(), trial(0, of), sample(0, of)]
    for number in range(1, steps + 1):
        lines.append(step(number, of, noise[number], speed, floor))
        if number % every == 0 or number == steps:
            lines += [trial(number, of, floor + 0.1), sample(number, of)]
        if number in resumes:
            lines.append(start(number))
    return lines


def write_run(folder: Path, lines=None, finished=True, **changes) -> Path:
    """A run folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"format": 1, **head(**changes)}), encoding="utf-8")
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (record() if lines is None else lines))
    (folder / "record.jsonl").write_text(text, encoding="utf-8")
    if finished:
        (folder / "finished.json").write_text('{"format": 1}')
    return folder

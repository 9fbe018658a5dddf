"""The data path of pre-training: what the loader does for a step, and what becomes of it when the corpus grows.

    .venv/bin/python -m bench.speed.data --data FOLDER [--members bert,roberta,...] [--lengths 128,512]
    .venv/bin/python -m bench.speed.data --growth --data FOLDER --sizes 1,10,100

What arrives: a prepared corpus. What leaves: one line for each member and row length: building and corrupting,
collating and both, beside the collators of `transformers`; or one for each size, in millions of tokens.
What never happens here: a device, or a second thread. Time is the processor time of the one there is.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from bench.speed.common.peer import Peer
from bench.speed.data_growth import alone, compare_sizes
from bench.speed.data_steps import ROWS, Step, lessons_at, ours, theirs
from bench.speed.masking import on_one_core
from unmask.core.errors import UserError
from unmask.data.corpus.corpus import Corpus
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.members import member, members

HEAD = f"""{"":>17} {"":>7} {"plain":^32} {"evened out":^24} {"collator":^14}
{"member":>11} {"rows":>5} {"tokens":>7} {"build":>7} {"collate":>8} {"all":>6} {"us/step":>8} \
{"collate":>8} {"all":>6} {"us/step":>8} {"":>8} {"ratio":>5}"""


def main() -> None:
    """Measure what is wished for."""
    on_one_core()
    warnings.filterwarnings("ignore")
    wishes = _parser().parse_args()
    if wishes.alone:
        alone(wishes)
    elif wishes.growth:
        compare_sizes(wishes)
    else:
        compare_members(wishes)


def compare_members(wishes: argparse.Namespace) -> None:
    """Every member at every length; what the corpus cannot feed is named at the end."""
    corpus = Corpus.open(wishes.data)
    path = wishes.data / "tokenizer.json"
    peer = Peer(Tokenizer.load(path), path)
    print(f"{corpus.manifest.counts.tokens:,} tokens in {len(corpus.shards)} shards; steps of {ROWS} rows")
    print("million tokens a second of processor time, one thread; tokens: of a step, without padding")
    print("build: choose rows, fetch, corrupt; collate: tensors; all: both; collator: rows are handed to it as lists\n")
    print(HEAD)
    left_out: dict[str, str] = {}
    for name in wishes.members or [recipe.name for recipe in members()]:
        for length in wishes.lengths:
            try:
                lessons = lessons_at(member(name), length, corpus)
            except UserError as error:
                left_out[name] = str(error)
                continue
            print(_line(name, length, ours(lessons, wishes.steps), theirs(lessons, peer)), flush=True)
    for name, reason in left_out.items():
        print(f"\n{name} is left out: {reason}")


def _line(name: str, length: int, step: Step, collator: float) -> str:
    plain, even = step.build + step.collate, step.build + step.even
    return (
        f"{name:>11} {length:>5} {step.tokens:>7,.0f} "
        f"{step.speed(step.build):>7.1f} {step.speed(step.collate):>8.1f} {step.speed(plain):>6.1f} "
        f"{plain * 1e6:>8,.0f} "
        f"{step.speed(step.even):>8.1f} {step.speed(even):>6.1f} {even * 1e6:>8,.0f} "
        f"{collator:>8.2f} {step.speed(plain) / collator:>4.0f}x"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="a prepared corpus")
    parser.add_argument("--members", type=_names, default=[], help="with commas; all, or the root where it grows")
    parser.add_argument("--lengths", type=_numbers, default=[128, 512], help="tokens in a row, with commas")
    parser.add_argument("--steps", type=int, default=40, help="steps in a pass")
    parser.add_argument("--growth", action="store_true", help="repeat the corpus to several sizes")
    parser.add_argument("--sizes", type=_numbers, default=[1, 10, 100], help="millions of tokens, with commas")
    parser.add_argument("--rounds", type=int, default=3, help="how often each size is measured")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()

"""`demo`: prepare, pre-train, fine-tune, export and report on embedded text; each step is a printed command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

SENTENCE = "使用语言模型来预测下一个词的概率"
BLANK = "这本书写得很[MASK]，我[MASK]喜欢。"
_LEARN, _JUDGE = 4000, 1500
"""Reviews to tune on, and to judge by."""
_PRETRAIN = "--size tiny --preset short --steps 1200 --num-evals 8 --set stages.1.max_length=128"
_TUNE = "--epochs 2 --lr 3e-4 --max-length 96"


@dataclass(frozen=True)
class DemoFiles:
    """The embedded text as plain files, so that everything after is what a user would do."""

    folder: Path

    @property
    def news(self) -> Path:
        """One month of a newspaper."""
        return self.folder / "peoples_daily.txt"

    @property
    def unlabelled(self) -> Path:
        """The reviews to learn from, without their labels: text of the kind that the task is about."""
        return self.folder / "reviews.txt"

    @property
    def train(self) -> Path:
        """Reviews with labels."""
        return self.folder / "reviews.train.jsonl"

    @property
    def dev(self) -> Path:
        """Other reviews with labels, which no training sees."""
        return self.folder / "reviews.dev.jsonl"

    def write(self) -> None:
        """Write what is not there yet. The last one is written last, so an interruption leaves nothing half done."""
        import json

        import numpy as np

        from unmask.core.io.atomic import write_text
        from unmask.core.rng import Key, permuted_index
        from unmask.data.text.sample_corpora import peoples_daily, reviews

        if self.dev.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        found = reviews()
        order = permuted_index(np.arange(len(found)), len(found), Key.of(0, "reviews"))
        judge, learn, rest = np.split(order, [_JUDGE, _JUDGE + _LEARN])
        write_text(self.news, "\n\n".join(document.text for document in peoples_daily()) + "\n")
        write_text(self.unlabelled, "\n\n".join(found[i][0] for i in (*learn, *rest)) + "\n")
        for path, rows in ((self.train, learn), (self.dev, judge)):
            lines = (json.dumps({"text": found[i][0], "label": found[i][1]}, ensure_ascii=False) for i in rows)
            write_text(path, "".join(f"{line}\n" for line in lines))


def demo(
    out: Annotated[Path, typer.Option(help="The folder to work in.")] = Path("unmask-demo"),
) -> None:
    """Prepare text, pre-train a tiny Chinese BERT, tune it, fill a mask, export it, and write a report.

    Examples:

        unmask demo --out unmask-demo
    """
    import sys
    import time

    from unmask.cli.ui.console import print_line
    from unmask.cli.ui.progress import duration

    began = time.monotonic()
    files = DemoFiles(out)
    files.write()
    data, run, exported = out / "data", out / "bert", out / "exported"
    _run_command(
        ["prepare", str(files.news), str(files.unlabelled), "--for", "wwm", "--vocab-size", "8000", "--out", str(data)]
    )
    _run_command(["walk", "bert", "--data", str(data), "--text", SENTENCE])
    _run_command(["audit", "bert", "--data", str(data)])
    _run_command(["pretrain", "bert", "--data", str(data), "--out", str(run), *_PRETRAIN.split()])
    _run_command(["fill-mask", str(run), BLANK, "--top-k", "3"])
    task = ["--train-file", str(files.train), "--dev-file", str(files.dev), *_TUNE.split()]
    _run_command(["finetune", str(run), *task, "--out", str(out / "tuned")])
    _run_command(["finetune", str(run), *task, "--from-scratch", "--out", str(out / "scratch")])
    if not exported.exists():
        _run_command(["export", str(run), str(exported)])
    _load_back(exported)
    _run_command(["report", str(run)])
    _compare(out)
    print_line(f"\nDone in {duration(time.monotonic() - began)}. The report: {run / 'report.html'}")
    print_line(f"Next, your own text:  {Path(sys.argv[0])} prepare FILES --for bert --out data/")


def _run_command(words: list[str]) -> None:
    """Print a command and run it, as the command line would."""
    import shlex

    from unmask.cli.main import app
    from unmask.cli.ui.console import console

    console().print(f"\n$ unmask {shlex.join(words)}", style="bold green", markup=False, soft_wrap=True)
    app(words, standalone_mode=False)


def _load_back(exported: Path) -> None:
    """Load the export with `transformers` alone, as a user of the network would."""
    from unmask.cli.ui.console import console, print_line

    lines = (
        "from transformers import AutoModelForMaskedLM, AutoTokenizer",
        f'model = AutoModelForMaskedLM.from_pretrained("{exported}")',
        f'tokenizer = AutoTokenizer.from_pretrained("{exported}")',
    )
    console().print("\n>>> " + "\n>>> ".join(lines), style="bold green", markup=False, soft_wrap=True)
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    # It would list the head for pairs of texts, which this class has no place for.
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model = AutoModelForMaskedLM.from_pretrained(exported)
    tokenizer = AutoTokenizer.from_pretrained(exported)
    row = tokenizer(BLANK, return_tensors="pt")
    best = model(**row).logits[0].argmax(-1)[row["input_ids"][0] == tokenizer.mask_token_id]
    predicted = tokenizer.convert_ids_to_tokens(best.tolist())
    print_line(f"{type(model).__name__}, {type(tokenizer).__name__}: {BLANK} -> {' '.join(predicted)}")


def _compare(out: Path) -> None:
    """The same network with and without pre-training, on reviews that neither has learned from."""
    from unmask.cli.ui.console import print_line
    from unmask.finetuning.artifact import read_task

    tuned, scratch = (read_task(out / name)["metrics"]["accuracy"] for name in ("tuned", "scratch"))
    print_line(f"\nReviews told apart: {100 * tuned:.1f} % after pre-training, {100 * scratch:.1f} % without it.")
    print_line(
        "One run of each, after minutes of pre-training: a point or two is chance. docs/results/long-runs.md has "
        "longer runs."
    )

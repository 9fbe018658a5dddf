"""`demo`: the main job on text that is always at hand.

What arrives: nothing. What leaves: a prepared corpus, one sentence walked through two rules, and an audit.
What never happens here: a shortcut. Every step is the command that a user would type, and is printed first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SENTENCE = "使用语言模型来预测下一个词的概率"


def demo(
    out: Annotated[Path, typer.Option(help="The folder to work in.")] = Path("unmask-demo"),
) -> None:
    """Prepare the embedded corpus, learn similar words, walk a sentence through the rules, audit them.

    Examples:

        unmask demo --out unmask-demo
    """
    import sys
    import time

    from unmask.cli.progress import duration
    from unmask.cli.terminal import console

    began = time.monotonic()
    text, data = _corpus(out), out / "data"
    page = out / "walk.html"
    _step(["prepare", str(text), "--for", "wwm", "--vocab-size", "8000", "--out", str(data)])
    _step(["vectors", "--data", str(data), "--epochs", "2"])
    _step(["walk", "wwm", "--data", str(data), "--text", SENTENCE])
    _step(["walk", "macbert", "--data", str(data), "--text", SENTENCE, "--html", str(page)])
    _step(["diff", "macbert", "wwm"])
    for member in ("bert", "wwm", "macbert"):
        _step(["audit", member, "--data", str(data)])
    done = f"\nDone in {duration(time.monotonic() - began)}. The corpus is in {data}, the page in {page}."
    console().print(done, markup=False, soft_wrap=True)
    command = Path(sys.argv[0])
    console().print(
        f"Next, your own text:  {command} prepare FILES --for wwm --out data/", markup=False, soft_wrap=True
    )


def _corpus(out: Path) -> Path:
    """The embedded corpus as a plain text file, so that preparing it is what a user would do."""
    from unmask.shards.files import write_text
    from unmask.text.embedded import peoples_daily

    path = out / "peoples_daily.txt"
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_text(path, "\n\n".join(document.text for document in peoples_daily()) + "\n")
    return path


def _step(words: list[str]) -> None:
    """Print a command and run it, as if it had been typed."""
    import shlex

    from unmask.cli.main import app
    from unmask.cli.terminal import console

    console().print(f"\n$ unmask {shlex.join(words)}", style="bold green", markup=False, soft_wrap=True)
    app(words, standalone_mode=False)

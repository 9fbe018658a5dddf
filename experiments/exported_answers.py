"""Whether an exported network answers in `transformers` as it answered here: every question that it was judged by.

    python -m experiments.exported_answers TUNED EXPORTED DEV

TUNED is a folder of `unmask tune`, EXPORTED what `unmask export` made of it, DEV the file that it was judged by. The
other side is asked as the card of the export says: rows and words through `transformers.pipeline`, choices and pieces
of passages through the class. What is said is compared with `predictions.jsonl`; the probabilities of tags and of
several labels, which are not in that file, with those of the tuned network. For spans, what is compared instead is how
much speaks for no answer. Rows that were cut or read in windows are left out and counted. A number (regression, the
scores of a query) is the same if it differs by less than 1e-4. Prints one object of JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

NEAR = 1e-4
QUESTION = 64
"""A question about a passage that has more tokens is cut."""
Line: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """What both sides say to one question, and how far their probabilities are apart."""

    ours: object
    theirs: object
    apart: float = 0.0
    exact: bool = True
    """Whether the same is said only if it is the same to the last digit; else numbers that are near are the same."""

    @property
    def equal(self) -> bool:
        """Whether the same is said."""
        return self.ours == self.theirs if self.exact else self.apart < NEAR


class Card:
    """The code on the card of a folder: run once up to where it asks, then for every question."""

    def __init__(self, folder: Path) -> None:
        (code, *_) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)
        lines = code.replace("FOLDER", str(folder)).splitlines()
        asks = next(number for number, line in enumerate(lines) if line.startswith(("question, ", "print(")))
        self.known: dict[str, Any] = {}
        self.rest = compile("\n".join(lines[asks + 1 :]), str(folder / "README.md"), "exec")
        exec("\n".join(lines[:asks]), self.known)

    def __call__(self, **asked: object) -> dict[str, Any]:
        """What the code knows after it was asked."""
        self.known.update(asked)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(self.rest, self.known)
        return self.known


@dataclass(frozen=True, slots=True)
class Both:
    """A tuned network on both sides."""

    tuned: Path
    exported: Path
    task: Line
    tokenizer: Any

    def lines(self) -> list[Line]:
        """The questions that it was judged by, and what it said."""
        text = (self.tuned / "predictions.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def fits(self, *texts: str | Sequence[str]) -> bool:
        """Whether a row was neither cut nor read in windows."""
        split = not isinstance(texts[0], str)
        whole = self.tokenizer(*texts, is_split_into_words=split, truncation=False, verbose=False)
        return len(whole["input_ids"]) <= self.task["max_length"]

    def judged(self) -> tuple[Any, Any, Any]:
        """The tuned network, its questions and their rows of tokens."""
        from unmask.finetuning.export.hf import open_finetuned
        from unmask.finetuning.task_data import read_examples

        network = open_finetuned(self.tuned)
        sheet = read_examples(Path(self.task["dev"]), network.task.task_type, network.columns, truths=False)
        return network, sheet, network.encode(sheet)


def main() -> None:
    tuned, exported, dev = map(Path, sys.argv[1:4])
    print(json.dumps(compare(tuned, exported, dev)))


def compare(tuned: Path, exported: Path, dev: Path) -> Line:
    """How many answers were compared, how many are the same, how far probabilities are apart, what was left out."""
    import torch
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    task = {**json.loads((tuned / "task.json").read_text("utf-8")), "dev": str(dev)}
    both = Both(tuned, exported, task, AutoTokenizer.from_pretrained(exported))
    with torch.no_grad():
        pairs = list(_KINDS[task["task_type"]](both))
    kept = [pair for pair in pairs if pair is not None]
    other = next((pair for pair in kept if not pair.equal), "")
    return {
        "compared": len(kept),
        "equal": sum(pair.equal for pair in kept),
        "apart": float(max((pair.apart for pair in kept), default=0.0)),
        "left_out": len(pairs) - len(kept),
        "first_other": str(other),
    }


def _classes(both: Both) -> Iterator[Pair | None]:
    """The likeliest class of each row."""
    answer = Card(both.exported).known["answer"]
    for line in both.lines():
        texts = _texts(line)
        if not both.fits(*texts):
            yield None
            continue
        said = _asked(answer, texts)
        likely = {one["label"]: one["score"] for one in said}
        yield Pair(line["prediction"], said[0]["label"], abs(likely[line["prediction"]] - line["probability"]))


def _labels(both: Both) -> Iterator[Pair | None]:
    """The labels of each row that are likelier than not; the probabilities of all."""
    import numpy as np

    from unmask.finetuning.logits import row_logits

    answer = Card(both.exported).known["answer"]
    network, _, exercise = both.judged()
    scores_NC = row_logits(network.learner, network.output.name, exercise).astype(np.float64)
    for line, scores in zip(both.lines(), scores_NC, strict=True):
        if not both.fits(*_texts(line)):
            yield None
            continue
        likely = {one["label"]: one["score"] for one in _asked(answer, _texts(line))}
        said = {label for label, share in likely.items() if share >= 0.5}
        pairs = zip(network.output.labels, 1 / (1 + np.exp(-scores)), strict=True)
        yield Pair({*line["prediction"]}, said, max(abs(likely[label] - float(share)) for label, share in pairs))


def _numbers(both: Both) -> Iterator[Pair | None]:
    """The number of each row."""
    answer = Card(both.exported).known["answer"]
    for line in both.lines():
        if not both.fits(*_texts(line)):
            yield None
            continue
        number = _asked(answer, _texts(line))[0]["score"]
        yield Pair(line["prediction"], number, abs(number - line["prediction"]), exact=False)


def _orders(both: Both) -> Iterator[Pair | None]:
    """The scores of the candidates of each query."""
    answer = Card(both.exported).known["answer"]
    for line in both.lines():
        rows = [(line["query"], one["candidate"]) for one in line["prediction"]]
        if not all(both.fits(*row) for row in rows):
            yield None
            continue
        theirs = [_asked(answer, row)[0]["score"] for row in rows]
        ours = [one["score"] for one in line["prediction"]]
        apart = max(abs(one - other) for one, other in zip(ours, theirs, strict=True))
        yield Pair(ours, theirs, apart, exact=False)


def _tags(both: Both) -> Iterator[Pair | None]:
    """The tag of each word."""
    from transformers import pipeline

    from unmask.finetuning.logits import softmax, token_logits

    answer = pipeline("token-classification", str(both.exported), ignore_labels=[])
    network, _, exercise = both.judged()
    places = exercise.truth.among(exercise.rows.rows)
    likely_WC, word = softmax(token_logits(network.learner, network.output.name, exercise)[places]), 0
    for line in both.lines():
        words = line["words"]
        own, word = likely_WC[word : word + len(words)].max(axis=1).tolist(), word + len(words)
        firsts = {piece["start"]: piece for piece in answer(" ".join(words))} if both.fits(words) else {}
        begins = [sum(map(len, words[:number])) + number for number in range(len(words))]
        for tag, share, begin in zip(line["prediction"], own, begins, strict=True):
            piece = firsts.get(begin)  # none: of this word, tokenising leaves nothing
            yield Pair(tag, piece["entity"], abs(piece["score"] - share)) if piece else None


def _choices(both: Both) -> Iterator[Pair | None]:
    """The likeliest choice of each question."""
    card = Card(both.exported)
    for line in both.lines():
        context, *question = line["given"]
        rows = [" ".join((*question, choice)) for choice in line["choices"]]
        if not all(both.fits(context, row) for row in rows):
            yield None
            continue
        likely = card(question=context, choices=rows)["likely"].tolist()
        theirs = line["choices"][max(range(len(likely)), key=likely.__getitem__)]
        yield Pair(line["prediction"], theirs, abs(max(likely) - line["probability"]))


def _spans(both: Both) -> Iterator[Pair | None]:
    """What is said, and the best piece even if nothing is said; for probabilities, how much speaks for no answer."""
    card = Card(both.exported)
    for line in both.lines():
        asked = len(both.tokenizer(line["question"], add_special_tokens=False)["input_ids"])
        if asked > QUESTION or not both.fits(line["question"], line["passage"]):
            yield None
            continue
        left = card(question=line["question"], passage=line["passage"])
        scores = left["scores"]
        doubt = float(scores[0, 0] - scores[left["first"], left["last"]])
        start, end = left["places"][left["first"]][0], left["places"][left["last"]][1]
        ours, theirs = (line["prediction"], line["best"][0]["text"]), (left["found"], line["passage"][start:end])
        yield Pair(ours, theirs, abs(doubt - line["no_answer"]))


def _texts(line: Line) -> tuple[str, ...]:
    text = line["text"]
    return (text,) if isinstance(text, str) else tuple(text)


def _asked(answer: Callable[[object], Any], texts: Sequence[str]) -> list[Line]:
    """All labels of a row with their scores, the likeliest first."""
    if len(texts) == 2:
        return list(answer({"text": texts[0], "text_pair": texts[1]}))
    (said,) = answer([texts[0]])
    return list(said)


_KINDS = {
    "classification": _classes,
    "multilabel": _labels,
    "regression": _numbers,
    "ranking": _orders,
    "tagging": _tags,
    "multiple-choice": _choices,
    "span-qa": _spans,
}


if __name__ == "__main__":
    main()

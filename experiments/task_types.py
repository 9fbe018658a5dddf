"""Every output with every policy on a real task, and every export beside `transformers`: two tables.

    python -m experiments.task_types --tasks FOLDER --en MODEL --zh MODEL --out runs/outputs [--rows 400] [--at-once 2]

FOLDER holds NAME.train.jsonl.gz and NAME.dev.jsonl.gz of the tasks named below. The first rows of each are taken, and a
quarter as many to judge by. Every run is the command that a user would type, in a process of its own; the same line
goes on after a stop, and what is finished is not made again. Each tuned folder is then exported by the command, and
`exported.py` compares all its answers; what no class of BERT can express is listed with the sentence that refuses it.
Scores say little here: rows are few. Writes `outputs.json`; exits with 1 if a run failed or an answer differs.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from experiments.exported_answers import NEAR

POLICIES = ("full", "frozen", "layers", "adapter", "lora", "norms", "top", "gradual")
REFUSED = ("cannot be written for transformers", "can be written as one of BERT's classes")
"""What the sentences say that refuse an export because no class can express the network."""
Line: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """What is asked: the words that a user types for it."""

    name: str
    task: str
    words: str
    label: str = ""
    """The field with labels of which those of the second file must be in the first."""
    query: str = ""
    """The field that rows of one group share."""


OUTPUTS = (
    Output("classify", "en_trec", "--task-type classification", "label"),
    Output("classify-mean", "en_trec", "--task-type classification --pooling mean", "label"),
    Output("classify-attention", "en_trec", "--task-type classification --pooling attention", "label"),
    Output(
        "labels",
        "en_reuters",
        "--task-type multilabel --text-columns text --label-column topics --max-length 256",
        "topics",
    ),
    Output("regress", "en_stsb", "--task-type regression"),
    Output("tag", "en_conll2003", "--task-type tagging", "tags"),
    Output("tag-crf", "en_conll2003", "--task-type tagging --crf", "tags"),
    Output("span", "en_squad", "--task-type span-qa"),
    Output("choose", "zh_c3", "--task-type multiple-choice"),
    Output("rank", "en_trecqa", "--task-type ranking", query="question"),
    Output("pair", "en_rte", "--task-type san-pair", "label"),
    Output(
        "write-1",
        "en_reuters",
        "--task-type generation --decoder new --text-columns text --label-column title --max-new-tokens 24 --num-beams 2",
    ),
    Output(
        "write-2",
        "en_reuters",
        "--task-type generation --decoder encoder --text-columns text --label-column title --max-new-tokens 24 --num-beams 2",
    ),
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One output with one policy, and where its files lie."""

    output: Output
    policy: str
    model: str
    folder: Path
    data: Path

    def file(self, part: str) -> Path:
        """The rows to learn from, or those to judge by."""
        return self.data / f"{self.output.name}.{part}.jsonl"

    def tune(self, epochs: float) -> list[str]:
        """The command that tunes."""
        files = ["--train-file", str(self.file("train")), "--dev-file", str(self.file("dev"))]
        manner = [*self.output.words.split(), "--method", self.policy, "--epochs", f"{epochs:g}", "--batch-size", "16"]
        return ["-m", "unmask", "finetune", self.model, *files, *manner, "--out", str(self.folder / "tuned")]


def main() -> None:
    wish = _wishes()
    attempts = list(_attempts(wish))
    for output in {attempt.output: attempt for attempt in attempts}.values():
        _cut(output, wish.tasks, wish.rows)
    with ThreadPoolExecutor(wish.at_once) as pool:
        found = list(pool.map(lambda attempt: _work(attempt, wish), attempts))
    (wish.out / "outputs.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _tell(found)
    sys.exit(1 if any(map(_went_wrong, found)) else 0)


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=Path, required=True, help="the folder of the task files")
    parser.add_argument("--en", required=True, help="a network for English")
    parser.add_argument("--zh", required=True, help="a network for Chinese")
    parser.add_argument("--rows", type=int, default=400, help="questions to learn from; a quarter as many to judge by")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--policy", action="append", choices=POLICIES, help="repeatedly; usual: all")
    parser.add_argument("--kind", action="append", help="tag: both of its outputs; tag-crf: that one. Usual: all")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def _attempts(wish: argparse.Namespace) -> Iterator[Attempt]:
    for policy, output in itertools.product(wish.policy or POLICIES, OUTPUTS):
        if not wish.kind or {output.name, output.words.split()[1]} & {*wish.kind}:
            model = wish.zh if output.task.startswith("zh") else wish.en
            yield Attempt(output, policy, model, wish.out / output.name / policy, wish.out / "data" / str(wish.rows))


def _cut(attempt: Attempt, tasks: Path, rows: int) -> None:
    """Write the first rows of both files of a task."""
    output = attempt.output
    attempt.data.mkdir(parents=True, exist_ok=True)
    learned = _first(output, tasks / f"{output.task}.train.jsonl.gz", rows, _both_ways)
    known = {label for line in learned for label in _labels(output, line)}
    judged = _first(
        output,
        tasks / f"{output.task}.dev.jsonl.gz",
        rows // 4,
        lambda line: _both_ways(line) and known >= _labels(output, line),
    )
    for part, lines in (("train", learned), ("dev", judged)):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        attempt.file(part).write_text(text, encoding="utf-8")


def _first(output: Output, path: Path, rows: int, usable: Callable[[Line], bool]) -> list[Line]:
    """Lines with so many questions. Groups stay whole; one that would be more than a quarter of all is passed over."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = filter(usable, map(json.loads, file))
        kept: list[Line] = []
        many = 0
        for _, group in itertools.groupby(lines, key=lambda line: line[output.query] if output.query else id(line)):
            some = list(group)
            size = sum(len(line.get("qas", "1")) for line in some)
            if size > max(12, rows // 4):
                continue
            kept, many = kept + some, many + size
            if many >= rows:
                break
    return kept


def _both_ways(line: Line) -> bool:
    """Whether a passage has questions with and without an answer, if it could; so few rows show both."""
    ways = {asked["is_impossible"] for asked in line.get("qas", []) if "is_impossible" in asked}
    return len(ways) != 1


def _labels(output: Output, line: Line) -> set[str]:
    """The labels of a row; of tags only their types."""
    if output.label == "tags":
        return {tag[2:] for tag in line["tags"]}
    held = line.get(output.label, [])
    return {*held} if isinstance(held, list) else {held}


def _work(attempt: Attempt, wish: argparse.Namespace) -> Line:
    """Tune, export, compare; what is told of it."""
    attempt.folder.mkdir(parents=True, exist_ok=True)
    threads = os.environ.get("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // wish.at_once)))
    about = {"output": attempt.output.name, "task": attempt.output.task, "policy": attempt.policy}
    tuned, exported = attempt.folder / "tuned", attempt.folder / "exported"
    failed = _run("tune", attempt.tune(wish.epochs), attempt.folder, tuned / "finished.json", threads)
    if failed:
        return _told({**about, "failed": failed})
    found = {**about, **_scored(tuned)}
    if exported.exists() and not (attempt.folder / "export.done").exists():  # stopped right after it
        shutil.rmtree(exported)
    words = ["-m", "unmask", "export", str(tuned), str(exported)]
    failed = _run("export", words, attempt.folder, exported / "config.json", threads)
    if failed:
        return _told({**found, "refused" if _is_refusal(failed) else "failed": failed})
    result = attempt.folder / "compare.out"
    words = ["-m", "experiments.exported_answers", str(tuned), str(exported), str(attempt.file("dev"))]
    failed = _run("compare", words, attempt.folder, result, threads)
    return _told({**found, "failed": failed} if failed else {**found, **json.loads(result.read_text("utf-8"))})


def _run(name: str, words: Sequence[str], folder: Path, result: Path, threads: str) -> str:
    """Run a command unless the same was run before to its end; nothing, or why it failed.

    A refusal is an end, too. Exports are read on the processor, whatever the networks were tuned on.
    """
    log, done, command = folder / f"{name}.log", folder / f"{name}.done", shlex.join(words)
    before, _, sentence = done.read_text("utf-8").partition("\n") if done.exists() else ("", "", "")
    if before == command and (sentence or result.exists()):
        return sentence
    hidden = {} if name == "tune" else {"CUDA_VISIBLE_DEVICES": ""}
    with log.open("w", encoding="utf-8") as err, (folder / f"{name}.out").open("w", encoding="utf-8") as out:
        ran = subprocess.run(
            [sys.executable, *words],
            stdout=out,
            stderr=err,
            check=False,
            env={**os.environ, **hidden, "OMP_NUM_THREADS": threads, "COLUMNS": "1000"},
        )
    said = [line.strip() for line in log.read_text("utf-8").splitlines() if line.strip()] or [f"see {log}"]
    failed = said[-1].removeprefix("unmask: ") if ran.returncode else ""
    if not failed or _is_refusal(failed):
        done.write_text(f"{command}\n{failed}", encoding="utf-8")
    return failed


def _is_refusal(sentence: str) -> bool:
    return any(words in sentence for words in REFUSED)


def _scored(tuned: Path) -> Line:
    said = json.loads((tuned / "task.json").read_text("utf-8"))
    return {
        "metric": said["metric"],
        "score": said["metrics"][said["metric"]],
        "seconds": said["seconds"],
        "trained": said["parameters"]["trained"],
        "all": said["parameters"]["all"],
        "rows": said["rows"],
    }


def _told(found: Line) -> Line:
    """Say that a cell is done."""
    last = found.get("failed") or (
        "not for transformers" if "refused" in found else f"{found['equal']} of {found['compared']} equal"
    )
    print(f"{found['output']:20s} {found['policy']:8s} {_number(found)}: {last}", file=sys.stderr, flush=True)
    return found


def _number(found: Line) -> str:
    score = found.get("score")
    return "-" if score is None else f"{found['metric']} {score:.3f}"


def _same(found: Line) -> bool:
    return 0 < found["compared"] == found["equal"] and found["apart"] < NEAR


def _went_wrong(found: Line) -> bool:
    return "failed" in found or ("compared" in found and not _same(found))


def _tell(found: Sequence[Line]) -> None:
    print("| output | task | policy | score | seconds | trained | share |\n|---|---|---|---|---|---|---|")
    for one in found:
        start = f"| {one['output']} | {one['task']} | {one['policy']} |"
        if "trained" in one:
            share = one["trained"] / one["all"]
            print(f"{start} {_number(one)} | {one['seconds']:.1f} | {one['trained']:,} | {share:.2%} |")
        else:
            print(f"{start} failed: {one['failed']} | | | |")
    _tell_matrix(found)
    _tell_exports(found)


def _tell_matrix(found: Sequence[Line]) -> None:
    """The scores again, an output in each line."""
    policies = list(dict.fromkeys(one["policy"] for one in found))
    print(f"\n| output | task | {' | '.join(policies)} |\n|---|---|{'---|' * len(policies)}")
    for output, task in dict.fromkeys((one["output"], one["task"]) for one in found):
        scores = {one["policy"]: _number(one) for one in found if one["output"] == output}
        print(f"| {output} | {task} | {' | '.join(scores.get(policy, '-') for policy in policies)} |")


def _tell_exports(found: Sequence[Line]) -> None:
    print("\n| output | policy | compared | equal | largest difference | left out |\n|---|---|---|---|---|---|")
    for one in found:
        if "compared" in one:
            cells = f"{one['compared']} | {one['equal']} | {one['apart']:.1e} | {one['left_out']}"
            print(f"| {one['output']} | {one['policy']} | {cells} |")
        elif "trained" in one and "failed" in one:
            print(f"| {one['output']} | {one['policy']} | failed: {one['failed']} | | | |")
    print("\n| not for transformers | the sentence |\n|---|---|")
    for sentence in dict.fromkeys(one["refused"] for one in found if "refused" in one):
        who = ", ".join(f"{one['output']} {one['policy']}" for one in found if one.get("refused") == sentence)
        print(f"| {who} | {sentence} |")
    wrong = sum(map(_went_wrong, found))
    compared = [one for one in found if "compared" in one]
    print(
        f"\n{len(found)} runs, {len(compared)} exports, {sum(one['equal'] for one in compared):,} of "
        f"{sum(one['compared'] for one in compared):,} answers equal; {wrong} went wrong"
    )


if __name__ == "__main__":
    main()

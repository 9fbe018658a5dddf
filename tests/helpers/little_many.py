"""Three small tasks of three kinds in one file, for a network that is small as well."""

from __future__ import annotations

from pathlib import Path

from little_task import BAD, GOOD, ratings, reviews, write_lines

DECLARED = """
[tasks.mood]
train = "mood.train.jsonl"
dev = "mood.dev.jsonl"
task_type = "classification"

[tasks.same]
train = "same.train.jsonl"
dev = "same.dev.jsonl"
task_type = "san-pair"

[tasks.like]
train = "like.train.jsonl"
dev = "like.dev.jsonl"
weight = 0.5
"""


def agreements(count: int, first: int = 0) -> list[dict[str, object]]:
    """Pairs of which both say the same, or not."""
    return [
        {
            "premise": (GOOD, BAD)[i // 2 % 2][i % 3],
            "hypothesis": f"{(GOOD, BAD)[(i // 2 + i) % 2][i // 3 % 3]} {i}",
            "label": ("yes", "no")[i % 2],
        }
        for i in range(first, first + count)
    ]


def write_tasks(folder: Path, declared: str = DECLARED) -> Path:
    folder.mkdir(exist_ok=True)
    for name, rows, count in (("mood", reviews, 40), ("same", agreements, 24), ("like", ratings, 15)):
        write_lines(folder / f"{name}.train.jsonl", rows(count))
        write_lines(folder / f"{name}.dev.jsonl", rows(12, first=100))
    path = folder / "tasks.toml"
    path.write_text(declared, encoding="utf-8")
    return path

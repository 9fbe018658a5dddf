"""Docstrings, comments, help and messages use the words of the field: a list of metaphors and idioms is refused."""

import io
import re
import tokenize
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "unmask"

# Words of an earlier house style, with what to write instead where it is not obvious.
BANNED = {
    r"hears?|heard": "attends to, reads",
    r"owed?|owes|owing": "needs",
    r"told|tells?": "prints, reports, names",
    r"said|says?": "predicts, declares, states",
    r"asked|asks": "requested, masked, predicted",
    r"whoever|nobody|somebody|everybody|no one": "the code, the caller, the user",
    r"beside": "next to, with",
    r"ahead of": "before",
    r"at rest|rests": "frozen",
    r"goes its way": "",
    r"trunks?": "encoder, network",
    r"learners?": "model",
    r"lessons?": "batch",
    r"crews?": "processes, ranks",
    r"wish(?:es|ed)?": "options, request",
    r"of our own|our own|of ours": "the package's",
    r"stand-ins?": "replacement",
    r"What arrives|What leaves|What never happens(?: here)?": "one plain sentence, or nothing",
}
PATTERN = re.compile(rf"\b(?:{'|'.join(BANNED)})\b")
ALLOWED = re.compile(
    r"the paper(?:'s text)? (?:does not )?says?|the rest|told apart|tell the order|order is told"
    r"|nobody hears it|word how said|asks for \{",  # sample sentences; code
    re.I,
)

# Folders and files that are held to it. A new folder belongs here.
DONE: tuple[str, ...] = (
    "api",
    "audits",
    "cli",
    "config",
    "core",
    "data/corpus",
    "data/corrupt",
    "data/input_formats",
    "data/similar_words",
    "data/tokenize",
    "evaluation",
    "finetuning",
    "inference",
    "interop",
    "lab/claims",
    "lab/landscape",
    "loading",
    "nets",
    "objectives",
    "recipes",
    "reports/charts",
    "reports/pages",
    "tasks",
    "train/cost_estimate.py",
    "train/evaluate.py",
    "train/flops_meter.py",
    "train/mask_samples.py",
    "train/rundir/checkpoint.py",
    "train/rundir/folder.py",
    "walks",
)


def prose(path: Path):
    """Comments, docstrings and strings with spaces, each with its line."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    for token in tokens:
        if token.type == tokenize.COMMENT and not token.string.startswith(("# noqa", "# type:")):
            yield token.start[0], token.string
        elif token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)) and " " in token.string:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def found_in(path: Path):
    for number, line in prose(path):
        plain = re.sub(r"`[^`]*`", "", ALLOWED.sub("", line))
        for word in PATTERN.findall(plain):
            yield f"{path.relative_to(SOURCE)}:{number}: {word!r} in {line.strip()[:100]}"


def files(name: str):
    return sorted((SOURCE / name).rglob("*.py")) if (SOURCE / name).is_dir() else [SOURCE / name]


@pytest.mark.parametrize("name", DONE)
def test_prose_uses_the_words_of_the_field(name):
    problems = [problem for path in files(name) for problem in found_in(path)]
    assert not problems, "\n".join(problems)

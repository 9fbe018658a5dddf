"""Small tuned networks of every kind, as `unmask tune` leaves them, and what they answer themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from small_bert import POSITIONS
from small_dialects import SHAPES, tokenizer_for

from unmask.dialect import Dialect
from unmask.train.learner import Learner
from unmask.tune.choice_rows import ChoiceQuestion
from unmask.tune.fields import Choice
from unmask.tune.label_rows import LabelQuestion
from unmask.tune.output import Answer, Output
from unmask.tune.policy import Full, Policy
from unmask.tune.rank_rows import RankQuestion
from unmask.tune.rows import RowQuestion
from unmask.tune.saved import Root, Tuned, save_tuned
from unmask.tune.sheet import Sheet
from unmask.tune.tagging import TagQuestion

TEXTS = ("今天天气真好", "The quick fox", "the lazy dog jumps over.")
PAIRS = (("今天天气真好", "我们去公园散步"), ("The quick fox", "the lazy dog."), ("天气", "dog"))
ROWS = tuple(RowQuestion((text,)) for text in TEXTS)
PAIR_ROWS = tuple(RowQuestion(pair) for pair in PAIRS)
LABEL_ROWS = tuple(LabelQuestion((text,)) for text in TEXTS)
TAG_ROWS = (TagQuestion(tuple("今天天气真好")), TagQuestion(("The", "quick", "fox")), TagQuestion(tuple("我们散步")))
CHOICES = (
    ChoiceQuestion(("今天天气真好", "我们去"), ("公园", "散步", "dog")),
    ChoiceQuestion(("The quick fox",), ("jumps", "the lazy dog")),
)
FULL = Full()
RANKED = (RankQuestion("天气", ("今天天气真好", "the lazy dog", "公园")),)


def small_tuned(output: Output, policy: Policy = FULL, dialect: Dialect = Dialect.BERT) -> Tuned:
    """A network whose head was drawn wide, so that its answers differ from row to row."""
    tokenizer = tokenizer_for(dialect)
    learner = Learner(SHAPES[dialect], (output.objective,), tokenizer.vocab.size, POSITIONS)
    learner.draw(3)
    policy.equip(learner, 3)
    generator = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for name, parameter in learner.named_parameters():
            if name.startswith("heads.") or "lora" in name:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return Tuned(output, Choice(("a", "b"), "label"), POSITIONS, learner.eval(), tokenizer, policy, drawn=True)


def tuned_folder(folder: Path, tuned: Tuned, questions: Sequence[object] = (), root: str = "") -> Sequence[Answer]:
    """Save a network; what it says to the questions."""
    folder.mkdir()
    save_tuned(
        tuned, folder, Root("r1", root), {"metrics": {"accuracy": 0.875}, "source": "r1", "rows": {"learned": 90}}
    )
    where = tuple(f"dev.jsonl:{number}" for number in range(len(questions)))
    return tuned.answer(Sheet("dev.jsonl", tuple(questions), where)) if questions else ()


def code_on_card(folder: Path, block: int = 0) -> str:
    """The Python that the card of a folder shows, made for that folder."""
    blocks = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    return blocks[block].replace("FOLDER", str(folder))

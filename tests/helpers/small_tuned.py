"""Small tuned networks of every kind, as `unmask finetune` leaves them, and what they answer themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from small_bert import POSITIONS
from small_dialects import SHAPES, tokenizer_for

from unmask.config.model_type import ModelType
from unmask.finetuning.artifact import BaseModelRef, FineTunedNetwork, save_finetuned
from unmask.finetuning.data.choice import ChoiceExample
from unmask.finetuning.data.classification import MultiLabelExample, TextExample
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.ranking import RankingExample
from unmask.finetuning.data.tagging.sentences import TaggedSentence
from unmask.finetuning.methods.protocol import FullFineTuning, Method
from unmask.finetuning.tasks.protocol import Prediction, TaskDefinition
from unmask.train.multi_head_model import MultiHeadModel

TEXTS = ("今天天气真好", "The quick fox", "the lazy dog jumps over.")
PAIRS = (("今天天气真好", "我们去公园散步"), ("The quick fox", "the lazy dog."), ("天气", "dog"))
ROWS = tuple(TextExample((text,)) for text in TEXTS)
PAIR_ROWS = tuple(TextExample(pair) for pair in PAIRS)
LABEL_ROWS = tuple(MultiLabelExample((text,)) for text in TEXTS)
TAG_ROWS = (
    TaggedSentence(tuple("今天天气真好")),
    TaggedSentence(("The", "quick", "fox")),
    TaggedSentence(tuple("我们散步")),
)
CHOICES = (
    ChoiceExample(("今天天气真好", "我们去"), ("公园", "散步", "dog")),
    ChoiceExample(("The quick fox",), ("jumps", "the lazy dog")),
)
FULL = FullFineTuning()
RANKED = (RankingExample("天气", ("今天天气真好", "the lazy dog", "公园")),)


def small_tuned(output: TaskDefinition, policy: Method = FULL, dialect: ModelType = ModelType.BERT) -> FineTunedNetwork:
    """A network whose head was drawn wide, so that its answers differ from row to row."""
    tokenizer = tokenizer_for(dialect)
    learner = MultiHeadModel(SHAPES[dialect], (output.objective,), tokenizer.vocab.size, POSITIONS)
    learner.init_weights(3)
    policy.add_modules(learner, 3)
    generator = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for name, parameter in learner.named_parameters():
            if name.startswith("heads.") or "lora" in name:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return FineTunedNetwork(
        output, ColumnChoice(("a", "b"), "label"), POSITIONS, learner.eval(), tokenizer, policy, from_scratch=True
    )


def tuned_folder(
    folder: Path, tuned: FineTunedNetwork, questions: Sequence[object] = (), root: str = ""
) -> Sequence[Prediction]:
    """Save a network; what it says to the questions."""
    folder.mkdir()
    save_finetuned(
        tuned,
        folder,
        BaseModelRef("r1", root),
        {"metrics": {"accuracy": 0.875}, "source": "r1", "rows": {"learned": 90}},
    )
    where = tuple(f"dev.jsonl:{number}" for number in range(len(questions)))
    return tuned.predict(ExampleSet("dev.jsonl", tuple(questions), where)) if questions else ()


def code_on_card(folder: Path, block: int = 0) -> str:
    """The Python that the card of a folder shows, made for that folder."""
    blocks = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    return blocks[block].replace("FOLDER", str(folder))

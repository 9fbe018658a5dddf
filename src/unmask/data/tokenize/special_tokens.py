"""Special tokens by role: [CLS], [SEP], [MASK], padding, unknown, BOS, EOS and sentinels.

The roles of a loaded tokenizer come from its own settings, then from the usual names. A missing role is an error.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from unmask.core.errors import InputError

SENTINEL = re.compile(r"<extra_id_(\d+)>")
"""A sentinel of a removed span (T5)."""
UNUSED = re.compile(r"\[unused\d+\]|<unused\d+>")
"""A reserved entry of BERT's vocabularies."""


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The spelling of each special token."""

    cls: str
    sep: str
    mask: str
    pad: str
    unk: str
    bos: str = ""
    """The BOS token; empty where the vocabulary has none."""
    eos: str = ""
    """The EOS token; empty where the vocabulary has none."""

    def __iter__(self) -> Iterator[str]:
        """Every special token once."""
        return iter(dict.fromkeys(name for field in fields(self) if (name := getattr(self, field.name))))


BERT = SpecialTokens("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]")
BERT_SPECIALS = (BERT.pad, BERT.unk, BERT.cls, BERT.sep, BERT.mask)
"""In the order of BERT's vocabularies: padding is 0."""
ROBERTA = SpecialTokens("<s>", "</s>", "<mask>", "<pad>", "<unk>", bos="<s>", eos="</s>")
ALBERT = SpecialTokens("[CLS]", "[SEP]", "[MASK]", "<pad>", "<unk>")

_USUAL_NAMES = SpecialTokens(
    cls="[CLS] <s> <cls>",
    sep="[SEP] </s> <sep>",
    mask="[MASK] <mask>",
    pad="[PAD] <pad>",
    unk="[UNK] <unk>",
    bos="<s> <bos> [BOS] <|startoftext|> <|endoftext|>",
    eos="</s> <eos> [EOS] <|endoftext|>",
)
_OPTIONAL = ("bos", "eos")


def sentinel_names(count: int) -> tuple[str, ...]:
    """T5's sentinels in the order of use: their ids decrease, so that sentinel 0 has the highest id."""
    return tuple(f"<extra_id_{number}>" for number in reversed(range(count)))


def added_token_entry(number: int, name: str, special_tokens: SpecialTokens) -> dict[str, Any]:
    """The `added_tokens` entry of a special token. A mask in spaced text includes the space before it."""
    takes_space = name == special_tokens.mask and special_tokens is not BERT
    flags = {"single_word": False, "lstrip": takes_space, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": name, **flags}


def find_special_tokens(content: dict[str, Any], names: Container[str]) -> SpecialTokens:
    """The roles of a loaded tokenizer: from its settings, then from the usual names."""
    known = _configured_names(content)
    return SpecialTokens(*(_find_one(field.name, known.get(field.name, ()), names) for field in fields(SpecialTokens)))


def _find_one(role: str, stated: Sequence[str], names: Container[str]) -> str:
    usual: list[str] = getattr(_USUAL_NAMES, role).split()
    for name in (*stated, *usual):
        if name in names:
            return name
    if role in _OPTIONAL:
        return ""
    raise InputError(
        f"the tokenizer has no {role} token: its settings name none and its vocabulary holds none of "
        f"{', '.join(usual)}; add one of them as a special token, or use a tokenizer that has it"
    )


def _configured_names(content: dict[str, Any]) -> dict[str, list[str]]:
    """The roles that post-processor, padding and model define."""
    found: dict[str, list[str]] = {"cls": [], "sep": [], "pad": [], "unk": []}
    for part in pipeline_steps(content.get("post_processor"), "processors"):
        if part["type"] in ("BertProcessing", "RobertaProcessing"):
            found["cls"].append(part["cls"][0])
            found["sep"].append(part["sep"][0])
        elif part["type"] == "TemplateProcessing":
            _read_template(part["single"], found)
    if content.get("padding"):
        found["pad"].append(content["padding"]["pad_token"])
    model = content["model"]
    if model.get("unk_token"):
        found["unk"].append(model["unk_token"])
    elif isinstance(model.get("unk_id"), int):
        found["unk"].append(model["vocab"][model["unk_id"]][0])
    return found


def _read_template(single: list[dict[str, Any]], found: dict[str, list[str]]) -> None:
    """The roles in a template `[CLS] A [SEP]`: the token before A is cls, the one after it sep."""
    role = "cls"
    for piece in single:
        if "SpecialToken" in piece:
            found[role].append(piece["SpecialToken"]["id"])
        else:
            role = "sep"


def pipeline_steps(part: dict[str, Any] | None, inner: str) -> list[dict[str, Any]]:
    """A pipeline part as a flat list: nothing, one part, or the members of a sequence."""
    if part is None:
        return []
    if part["type"] != "Sequence":
        return [part]
    return [leaf for member in part[inner] for leaf in pipeline_steps(member, inner)]

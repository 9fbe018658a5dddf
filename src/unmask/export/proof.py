"""The proof of an export: both libraries read the folder, and must say the same of the same text.

What arrives: a folder that was just written, and lines of text. What leaves: how far the two are apart.
What never happens here: trust. Ids, loaded keys, hidden states of all layers and logits are all compared.

Shapes: T tokens of all rows, R rows, L the longest row, D width, V vocabulary.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from unmask.errors import InputError, UserError
from unmask.export.bert import Architecture
from unmask.export.table import some
from unmask.nets.layout import Borders, from_grid, to_grid
from unmask.nets.model import Model
from unmask.nets.transformer import Tokens
from unmask.tokenize.tokenizer import Tokenizer
from unmask.use.rows import flat

Row = tuple[list[int], list[int]]
"""Ids and segments."""

TOLERANCE = 1e-4
SENTENCES = (
    "The old clock in the hall strikes seven, and nobody hears it.",
    "今天天气很好，我们下午去公园散步。",
    "Models read 3.5 million words; people read fewer, but they remember them.",
    "他说：“明天再来吧。”然后关上了门。",
)
"""What is read where the caller gives no text of their own."""


@dataclass(frozen=True, slots=True)
class Proof:
    """How far two libraries are apart on the same folder, at most."""

    version: str
    """Of transformers."""
    rows: int
    tokens: int
    hidden: float
    """Over the states of all layers."""
    logits: float
    """Over the logits of all heads; 0 where there is no head."""


def need_transformers() -> ModuleType:
    """The other library, or a sentence that says how to get it."""
    try:
        import transformers
    except ImportError as error:
        raise UserError(
            "An export is compared with transformers before it is kept, and transformers is not installed. Install it "
            "with: pip install 'unmask[export]'"
        ) from error
    module: ModuleType = transformers
    return module


def prove(folder: Path, model: Model, tokenizer: Tokenizer, architecture: Architecture, lines: Sequence[str]) -> Proof:
    """Compare, and refuse what differs by more than the tolerance. `model` is the folder as we read it."""
    transformers = need_transformers()
    with _quiet(transformers), torch.no_grad():
        other = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        rows = _rows(other, tokenizer, lines, model)
        network = _their_network(getattr(transformers, architecture.value), folder)
        tokens = _batch(rows)
        theirs = network(**_padded(tokens), output_hidden_states=True)
    states, logits = _ours(model.eval(), tokens, pooled=architecture is Architecture.ENCODER)
    proof = Proof(
        version=transformers.__version__,
        rows=len(rows),
        tokens=len(tokens.ids_T),
        hidden=_apart(states, [from_grid(state, tokens.borders) for state in theirs.hidden_states]),
        logits=_apart(logits, _their_logits(theirs, tokens.borders)),
    )
    if not max(proof.hidden, proof.logits) <= TOLERANCE:  # written so that NaN is refused too
        raise InputError(
            f"The export is refused: transformers {proof.version} reads other numbers from it (hidden states differ by "
            f"{proof.hidden:.2g}, logits by {proof.logits:.2g}, allowed is {TOLERANCE:g}). Are all weights finite?"
        )
    return proof


@contextlib.contextmanager
def _quiet(transformers: ModuleType) -> Iterator[None]:
    """No bars and no advice from the other library while it reads; its settings come back afterwards."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _rows(other: Any, tokenizer: Tokenizer, lines: Sequence[str], model: Model) -> list[Row]:  # noqa: ANN401
    """Every line, every line with the next, and one row that visits all positions."""
    asked = [*((line, None) for line in lines), *itertools.pairwise(lines)]
    rows = [_row(other, tokenizer, line, follower) for line, follower in asked]
    step = max(1, model.vocabulary // model.positions)
    numbers = range(model.positions)
    rows.append(([n * step % model.vocabulary for n in numbers], [n % model.shape.segments for n in numbers]))
    return [(ids[: model.positions], segments[: model.positions]) for ids, segments in rows]


def _row(other: Any, tokenizer: Tokenizer, line: str, follower: str | None) -> Row:  # noqa: ANN401
    """The row of a line, or of two, on which both tokenizers must agree."""
    ours = tokenizer.pipeline.encode(line, follower)
    theirs = other(line, follower)
    if (list(theirs["input_ids"]), list(theirs["token_type_ids"])) != (ours.ids, ours.type_ids):
        raise InputError(
            f"The export is refused: transformers would make other tokens of the text {line[:40]!r} "
            f"({type(other).__name__}). This tokenizer cannot be written for it."
        )
    return ours.ids, ours.type_ids


def _their_network(kind: Any, folder: Path) -> Any:  # noqa: ANN401
    """Their class, filled from the folder; every key of both sides must have found its place."""
    network, info = kind.from_pretrained(
        folder, local_files_only=True, use_safetensors=True, output_loading_info=True, dtype=torch.float32
    )
    lost = sorted(str(key) for name in ("missing_keys", "unexpected_keys", "mismatched_keys") for key in info[name])
    if lost:
        raise InputError(f"The export is refused: transformers finds no match for {some(lost)}.")
    return network.eval()


def _batch(rows: Sequence[Row]) -> Tokens:
    segment_T = torch.tensor([number for _, segment in rows for number in segment])
    return replace(flat([ids for ids, _ in rows]), segment_T=segment_T)


def _padded(tokens: Tokens) -> dict[str, Tensor]:
    """The same batch as a grid with an attention mask."""
    return {
        "input_ids": to_grid(tokens.ids_T, tokens.borders),
        "token_type_ids": to_grid(tokens.segment_T, tokens.borders),
        "attention_mask": tokens.borders.real_SL().long(),
    }


def _ours(model: Model, tokens: Tokens, pooled: bool) -> tuple[list[Tensor], list[Tensor]]:
    """States of all layers, and the logits of the heads that there are; the pooled states of a bare encoder."""
    with torch.no_grad():
        states = model.trunk(tokens)
        first_RD = states.last_TD[tokens.borders.offsets_S1[:-1].long()]
        said = [] if model.tokens is None else [model.tokens(states.last_TD)]
        if model.row is not None:
            said.append(torch.tanh(model.row.pool(first_RD)) if pooled else model.row(first_RD))
    return list(states.layers), said


def _their_logits(output: Any, borders: Borders) -> list[Tensor]:  # noqa: ANN401
    """Whatever their class calls its logits; the pooled states of a bare encoder."""
    if "pooler_output" in output:
        return [output["pooler_output"]]
    found = [output[name] for name in ("prediction_logits", "logits", "seq_relationship_logits") if name in output]
    # Logits for tokens are a grid of rows; those for rows are not.
    return [from_grid(logits, borders) if logits.dim() == 3 else logits for logits in found]


def _apart(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """The largest difference; NaN if there is one anywhere."""
    apart = [(a - b).abs().max() for a, b in zip(ours, theirs, strict=True)]
    return float(torch.stack(apart).max()) if apart else 0.0

"""The parity check of an export: transformers and unmask must compute the same from the written folder."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch

from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.extra_format import TOLERANCE, FormatCheck, WrittenFolder
from unmask.interop.hf.reference_outputs import (
    LAST_HIDDEN_STATE,
    Row,
    max_difference,
    model_outputs,
    pack_rows,
    to_padded_inputs,
)
from unmask.interop.hf.weight_table import first_few
from unmask.interop.optional_dependency import quiet_transformers, require_transformers

SENTENCES = (
    "The old clock in the hall strikes seven, and nobody hears it.",
    "今天天气很好，我们下午去公园散步。",
    "Models read 3.5 million words; people read fewer, but they remember them.",
    "他说：“明天再来吧。”然后关上了门。",
)
"""The default lines of text."""


@dataclass(frozen=True, slots=True)
class ParityReport:
    """The largest differences between transformers and unmask on the same folder."""

    version: str
    """Of transformers."""
    num_rows: int
    num_tokens: int
    max_hidden_difference: float
    """Over the hidden states of all layers."""
    max_logits_difference: float
    """Over the logits of all heads, or over the pooled states of a bare encoder."""
    notes: tuple[str, ...] = ()
    """Deviations of the folder from the network, as sentences."""
    format_checks: tuple[FormatCheck, ...] = ()
    """The checks of files for further libraries."""


def check_parity(written: WrittenFolder) -> ParityReport:
    """Compare ids, hidden states of all layers and logits; refuse differences above the tolerance."""
    transformers, model, architecture = require_transformers(), written.model.eval(), written.architecture
    rows = comparison_rows(written)
    tokens = pack_rows(rows)
    with quiet_transformers(transformers), torch.no_grad():
        theirs = _load_hf_network(written)(**to_padded_inputs(tokens, architecture), output_hidden_states=True)
        states = {str(number): state for number, state in enumerate(model.network(tokens).layers)}
    ours = {
        name: value for name, value in model_outputs(model, tokens, architecture).items() if name != LAST_HIDDEN_STATE
    }
    known = {str(number): state for number, state in enumerate(theirs.hidden_states)}
    assert states.keys() == known.keys(), "both have the same layers"
    proof = ParityReport(
        version=transformers.__version__,
        num_rows=len(rows),
        num_tokens=len(tokens.ids_T),
        max_hidden_difference=max_difference(states, known, tokens.sequences),
        max_logits_difference=max_difference(ours, theirs, tokens.sequences),
    )
    worst = max(proof.max_hidden_difference, proof.max_logits_difference)
    if not worst <= TOLERANCE:  # also refuses NaN
        raise InputError(
            f"The export is refused: transformers {proof.version} reads other numbers from it (hidden states differ by "
            f"{proof.max_hidden_difference:.2g}, logits by {proof.max_logits_difference:.2g}, allowed is "
            f"{TOLERANCE:g}). Check that all weights are finite."
        )
    return proof


def comparison_rows(written: WrittenFolder) -> list[Row]:
    """Rows of each line, of each two lines, and one with all positions; both tokenizers must agree on them."""
    transformers, model = require_transformers(), written.model
    with quiet_transformers(transformers):
        other = transformers.AutoTokenizer.from_pretrained(written.folder, local_files_only=True)
        texts = [*((line, None) for line in written.lines), *itertools.pairwise(written.lines)]
        rows = [_row(other, written.tokenizer, line, follower) for line, follower in texts]
    step = max(1, model.vocab_size // model.max_positions)
    numbers, pad = range(model.max_positions), written.tokenizer.vocab.pad
    # Padding is replaced: text rows hold none, and RoBERTa gives it no position.
    ids = [n * step % model.vocab_size for n in numbers]
    ids = [(pad + 1) % model.vocab_size if one == pad else one for one in ids]
    rows.append((ids, [n % model.config.num_segments for n in numbers]))
    return [(ids[: model.max_positions], segments[: model.max_positions]) for ids, segments in rows]


def _row(other: Any, tokenizer: Tokenizer, line: str, follower: str | None) -> Row:  # noqa: ANN401
    """The ids and segments of one or two lines; refuses a tokenizer on which the libraries differ."""
    ours = tokenizer.pipeline.encode(line, follower)
    theirs = other(line, follower)
    segments = theirs.get("token_type_ids", [0] * len(theirs["input_ids"]))
    if (list(theirs["input_ids"]), list(segments)) != (ours.ids, ours.type_ids):
        raise InputError(
            f"The export is refused: transformers would make other tokens of the text {line[:40]!r} "
            f"({type(other).__name__}). This tokenizer cannot be written for it."
        )
    return ours.ids, ours.type_ids


def _load_hf_network(written: WrittenFolder) -> Any:  # noqa: ANN401
    """The model of transformers; refuses missing, unexpected and mismatched keys."""
    kind = getattr(require_transformers(), written.architecture.name)
    network, info = kind.from_pretrained(
        written.folder,
        local_files_only=True,
        use_safetensors=True,
        output_loading_info=True,
        dtype=torch.float32,
    )
    lost = sorted(str(key) for name in ("missing_keys", "unexpected_keys", "mismatched_keys") for key in info[name])
    if lost:
        raise InputError(
            f"The export is refused: transformers finds no match for {first_few(lost)}. Choose another architecture."
        )
    return network.eval()

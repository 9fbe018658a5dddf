"""`export`: a network as a folder that `transformers` loads, proven.

What arrives: a run folder or a Hugging Face folder, and the name of a new folder. What leaves: that folder.
What never happens here: writing; see `unmask.export.write`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask.use.choices import Which

if TYPE_CHECKING:
    from unmask.export.bert import Architecture
    from unmask.export.proof import Proof
    from unmask.nets.model import Model


class Purpose(StrEnum):
    """What the exported network is for."""

    WHOLE = "whole"
    """Everything that the network has."""
    PRETRAINING = "pretraining"
    MASKED_LM = "masked-lm"
    ENCODER = "encoder"
    CLASSIFIER = "classifier"


def export(
    source: Annotated[Path, typer.Argument(help="A folder of pretrain or tune, or a Hugging Face folder.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist, or be empty.")],
    purpose: Annotated[
        Purpose, typer.Option("--as", help="What to write; whole leaves nothing behind.")
    ] = Purpose.WHOLE,
    checkpoint: Annotated[Which, typer.Option(help="Which checkpoint of a run.")] = Which.LAST,
) -> None:
    """Write a folder that transformers loads with no remote code, and prove that both read the same numbers.

    Examples:

        unmask export runs/bert exported/

        unmask export runs/bert masked/ --as masked-lm --checkpoint best

        unmask export tuned/ classifier/
    """
    from unmask.export.source import is_tuned, open_source
    from unmask.export.write import export as write

    if is_tuned(source):
        _export_tuned(source, out, purpose)
        return
    opened = open_source(source, checkpoint)
    architecture = _architecture(purpose, opened.model)
    proof = write(opened.model, opened.tokenizer, out, architecture, opened.about)
    _tell(out, architecture, proof)


def _export_tuned(source: Path, out: Path, purpose: Purpose) -> None:
    from unmask.errors import InputError
    from unmask.export.bert import Architecture
    from unmask.export.tuned import export_tuned

    if purpose not in (Purpose.WHOLE, Purpose.CLASSIFIER):
        raise InputError(f"{source} was tuned for a task and can be written as a classifier only, not --as {purpose}.")
    _tell(out, Architecture.CLASSIFIER, export_tuned(source, out))


def _architecture(purpose: Purpose, model: Model) -> Architecture:
    """The class to write for; refuses one that needs a head which the network does not have."""
    from unmask.errors import InputError
    from unmask.export.bert import PARTS, Architecture, fitting

    if purpose is Purpose.WHOLE:
        return fitting(model)
    if purpose is Purpose.CLASSIFIER:
        raise InputError("--as classifier needs a network that was tuned for a task: unmask tune makes one.")
    named = {
        Purpose.PRETRAINING: Architecture.PRE_TRAINING,
        Purpose.MASKED_LM: Architecture.MASKED_LM,
        Purpose.ENCODER: Architecture.ENCODER,
    }[purpose]
    needed = PARTS[named]
    missing = ["a head for tokens"] * (needed.tokens and model.tokens is None)
    missing += ["a head for rows"] * (needed.pool and model.row is None)
    if missing:
        raise InputError(
            f"--as {purpose} writes a {named}, which needs {' and '.join(missing)}, and this network has none. "
            f"It can be written as a {fitting(model)}: leave --as out."
        )
    return named


def _tell(out: Path, architecture: Architecture, proof: Proof) -> None:
    from unmask.cli.terminal import say

    say(f"{out}: a {architecture} with its tokenizer and a card")
    say(
        f"proven: transformers {proof.version} and unmask agree on {proof.rows} rows of {proof.tokens:,} tokens; "
        f"hidden states differ by at most {proof.hidden:.1e}, logits by {proof.logits:.1e}"
    )

"""`export`: a network as a folder that `transformers` loads, proven.

What arrives: a run folder, a tuned network or a Hugging Face folder, and the name of a new folder. What leaves: that
folder.
What never happens here: writing; see `unmask.export.write`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask.use.choices import Pool, Which

if TYPE_CHECKING:
    from unmask.export.bert import Architecture
    from unmask.export.extra import Extra
    from unmask.export.proof import Proof
    from unmask.nets.model import Model


class Purpose(StrEnum):
    """What the exported network is for."""

    WHOLE = "whole"
    """Everything that the network has."""
    PRETRAINING = "pretraining"
    MASKED_LM = "masked-lm"
    ENCODER = "encoder"
    SENTENCE = "sentence"
    """One vector for each text, for sentence-transformers."""
    CLASSIFIER = "classifier"


def export(
    source: Annotated[Path, typer.Argument(help="A folder of pretrain or tune, or a Hugging Face folder.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist, or be empty.")],
    purpose: Annotated[
        Purpose, typer.Option("--as", help="What to write; whole leaves nothing behind. A tuned network is whole.")
    ] = Purpose.WHOLE,
    checkpoint: Annotated[Which, typer.Option(help="Which checkpoint of a run.")] = Which.LAST,
    pool: Annotated[
        Pool | None, typer.Option("--pool", "--pooling", help="sentence: how tokens become one vector. Usual: mean.")
    ] = None,
    normalise: Annotated[bool, typer.Option("--normalise", help="sentence: bring every vector to length 1.")] = False,
    onnx: Annotated[bool, typer.Option("--onnx", help="Also write model.onnx, for programs without torch.")] = False,
    network: Annotated[
        Path | None, typer.Option(help="Where the network lies that LoRA or a head was tuned on, if it was moved.")
    ] = None,
) -> None:
    """Write a folder that transformers loads with no remote code, and prove that both read the same numbers.

    Examples:

        unmask export runs/bert exported/

        unmask export runs/bert masked/ --as masked-lm --checkpoint best

        unmask export tuned/ classifier/

        unmask export runs/bert sentences/ --as sentence --pool mean --normalise

        unmask export runs/bert encoder/ --as encoder --onnx
    """
    from unmask.export.source import is_tuned, open_source
    from unmask.export.write import export as write

    extras = _extras(purpose, pool, normalise, onnx)
    if is_tuned(source):
        _export_tuned(source, out, purpose, extras, network)
        return
    opened = open_source(source, checkpoint)
    architecture = _architecture(purpose, opened.model)
    proof = write(opened.model, opened.tokenizer, out, architecture, opened.about, extras=extras)
    _tell(out, architecture, proof)


def _extras(purpose: Purpose, pool: Pool | None, normalise: bool, onnx: bool) -> list[Extra]:
    """The files beside the usual ones; refuses an option that would be of no use."""
    from unmask.errors import InputError
    from unmask.export.onnx_file import Onnx
    from unmask.export.sentence import Sentence

    if purpose is Purpose.SENTENCE:
        return [Sentence(pool or Pool.MEAN, normalise), *([Onnx()] if onnx else [])]
    if pool is not None or normalise:
        raise InputError("--pool and --normalise say how a text becomes one vector: they go with --as sentence.")
    return [Onnx()] if onnx else []


def _export_tuned(source: Path, out: Path, purpose: Purpose, extras: list[Extra], network: Path | None) -> None:
    from unmask.errors import InputError
    from unmask.export.bert import Architecture
    from unmask.export.tuned import export_tuned, open_tuned
    from unmask.export.tuned_class import class_of

    if purpose is Purpose.CLASSIFIER and class_of(open_tuned(source, network))[0] is not Architecture.CLASSIFIER:
        raise InputError(f"{source} was tuned for a task that is no classification of rows; leave --as out.")
    if purpose not in (Purpose.WHOLE, Purpose.CLASSIFIER):
        raise InputError(
            f"{source} was tuned for a task and is written as what answers that task, not --as {purpose}; leave --as "
            "out, or name the network that it was tuned from."
        )
    _tell(out, *export_tuned(source, out, extras=extras, network=network))


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
        Purpose.SENTENCE: Architecture.ENCODER,
    }[purpose]
    needed = PARTS[named]
    missing = ["a head for tokens"] * (needed.tokens and model.tokens is None)
    missing += ["a head for rows"] * (bool(needed.row) and model.row is None)
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
    for other in proof.others:
        say(f"proven: {other}")

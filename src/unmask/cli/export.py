"""`export`: a network as a folder that `transformers` loads, proven.

What arrives: a run folder, a tuned network or a Hugging Face folder, and the name of a new folder. What leaves: that
folder.
What never happens here: writing; see `unmask.export.write`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask.use.choices import Pool, Which

if TYPE_CHECKING:
    from unmask.export.architecture import Architecture, Purpose
    from unmask.export.extra import Extra
    from unmask.export.proof import Proof
    from unmask.export.source import Network
    from unmask.nets.model import Model


class Form(StrEnum):
    """What the exported network is for."""

    WHOLE = "whole"
    """Everything that the network has."""
    PRETRAINING = "pretraining"
    MASKED_LM = "masked-lm"
    ENCODER = "encoder"
    SENTENCE = "sentence"
    """One vector for each text, for sentence-transformers."""
    CLASSIFIER = "classifier"
    DISCRIMINATOR = "discriminator"
    """ELECTRA: what tells replaced tokens from the text's own."""
    GENERATOR = "generator"
    """ELECTRA: the small network that fills masks."""


def export(
    source: Annotated[Path, typer.Argument(help="A folder of pretrain or tune, or a Hugging Face folder.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist, or be empty.")],
    form: Annotated[
        Form, typer.Option("--as", help="What to write; whole leaves nothing behind. A tuned network is whole.")
    ] = Form.WHOLE,
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

        unmask export runs/electra generator/ --as generator
    """
    from unmask.export.source import is_tuned, open_source
    from unmask.export.write import export as write

    extras = _extras(form, pool, normalise, onnx)
    if is_tuned(source):
        _export_tuned(source, out, form, extras, network)
        return
    opened = open_source(source, checkpoint)
    model = _model(form, opened)
    architecture = _architecture(form, model, opened)
    proof = write(model, opened.tokenizer, out, architecture, opened.about, extras=extras)
    _tell(out, architecture, proof)
    if opened.left and form is Form.WHOLE:
        _tell_left(opened.left)
    if opened.generator is not None and model is opened.model:
        _tell_generator()


def _extras(form: Form, pool: Pool | None, normalise: bool, onnx: bool) -> list[Extra]:
    """The files beside the usual ones; refuses an option that would be of no use."""
    from unmask.errors import InputError
    from unmask.export.onnx_file import Onnx
    from unmask.export.sentence import Sentence

    if form is Form.SENTENCE:
        return [Sentence(pool or Pool.MEAN, normalise), *([Onnx()] if onnx else [])]
    if pool is not None or normalise:
        raise InputError("--pool and --normalise say how a text becomes one vector: they go with --as sentence.")
    return [Onnx()] if onnx else []


def _export_tuned(source: Path, out: Path, form: Form, extras: list[Extra], network: Path | None) -> None:
    from unmask.errors import InputError
    from unmask.export.architecture import Purpose
    from unmask.export.tuned import export_tuned, open_tuned
    from unmask.export.tuned_class import class_of

    if form is Form.CLASSIFIER and class_of(open_tuned(source, network))[0].purpose is not Purpose.CLASSIFIER:
        raise InputError(f"{source} was tuned for a task that is no classification of rows; leave --as out.")
    if form not in (Form.WHOLE, Form.CLASSIFIER):
        raise InputError(
            f"{source} was tuned for a task and is written as what answers that task, not --as {form}; leave --as "
            "out, or name the network that it was tuned from."
        )
    _tell(out, *export_tuned(source, out, extras=extras, network=network))


def _model(form: Form, opened: Network) -> Model:
    """The network to write: the one that was trained, or the generator that was trained beside it."""
    return opened.generator if form is Form.GENERATOR and opened.generator is not None else opened.model


def _architecture(form: Form, model: Model, opened: Network) -> Architecture:
    """The class to write for; refuses one that the dialect does not have, or that needs a head which is not there."""
    from unmask.errors import InputError
    from unmask.export.architecture import Architecture, Purpose
    from unmask.export.dialects import dialect_for, fitting, grammar_of, parts_of

    if form is Form.CLASSIFIER:
        raise InputError("--as classifier needs a network that was tuned for a task: unmask tune makes one.")
    dialect = dialect_for(model.shape, opened.dialect)
    fits = fitting(model, dialect)
    if form is Form.WHOLE:
        return fits
    named = Architecture(dialect, _purpose(form))
    known = Purpose.DISCRIMINATOR in grammar_of(dialect).classes if form is Form.GENERATOR else True
    if not known or named.purpose not in grammar_of(dialect).classes:
        raise InputError(
            f"--as {form}: {grammar_of(dialect).name} has no class for that. This network can be written as "
            f"{fits.article} {fits}: leave --as out."
        )
    parts = parts_of(named)
    missing = ["a head for tokens"] * (parts.tokens and model.tokens is None)
    missing += ["a head for rows"] * ("row.classify" in parts.layers and model.row is None)
    missing += ["a head for replaced tokens"] * ("replaced.dense" in parts.layers and model.replaced is None)
    if missing:
        other = " Its generator has one: --as generator." if opened.generator is not None else ""
        raise InputError(
            f"--as {form} writes {named.article} {named}, which needs {' and '.join(missing)}, and this network has "
            f"none. It can be written as {fits.article} {fits}: leave --as out.{other}"
        )
    return named


def _purpose(form: Form) -> Purpose:
    from unmask.export.architecture import Purpose

    return {
        Form.PRETRAINING: Purpose.PRE_TRAINING,
        Form.MASKED_LM: Purpose.MASKED_LM,
        Form.GENERATOR: Purpose.MASKED_LM,
        Form.DISCRIMINATOR: Purpose.DISCRIMINATOR,
        Form.ENCODER: Purpose.ENCODER,
        Form.SENTENCE: Purpose.ENCODER,
    }[form]


def _tell(out: Path, architecture: Architecture, proof: Proof) -> None:
    from unmask.cli.terminal import say

    say(f"{out}: {architecture.article} {architecture} with its tokenizer and a card")
    for note in proof.notes:
        say(f"note: {note}")
    say(
        f"proven: transformers {proof.version} and unmask agree on {proof.rows} rows of {proof.tokens:,} tokens; "
        f"hidden states differ by at most {proof.hidden:.1e}, logits by {proof.logits:.1e}"
    )
    for other in proof.others:
        say(f"proven: {other}")


def _tell_left(heads: Sequence[str]) -> None:
    from unmask.cli.terminal import say

    many = "Heads that have" if len(heads) > 1 else "A head that has"
    say(f"note: {many} no class in transformers and stayed behind: {', '.join(heads)}.")


def _tell_generator() -> None:
    from unmask.cli.terminal import say

    say("note: this is the discriminator. Its generator, which fills masks, can be had with --as generator.")

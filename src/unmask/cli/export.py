"""`export`: a network as a folder that `transformers` loads, proven.

What arrives: a run folder, a tuned network or a Hugging Face folder, and the name of a new folder. What leaves: that
folder.
What never happens here: writing; see `unmask.interop.hf.save`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask.config.inference import CheckpointChoice
from unmask.config.pooling import Pooling

if TYPE_CHECKING:
    from unmask.interop.extra_format import ExtraFormat
    from unmask.interop.hf.model_map import Architecture, HFTask
    from unmask.interop.hf.parity_check import ParityReport
    from unmask.loading.open_model import LoadedNetwork
    from unmask.nets.model import EncoderWithHeads


class ExportForm(StrEnum):
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
        ExportForm, typer.Option("--as", help="What to write; whole leaves nothing behind. A tuned network is whole.")
    ] = ExportForm.WHOLE,
    checkpoint: Annotated[CheckpointChoice, typer.Option(help="Which checkpoint of a run.")] = CheckpointChoice.LAST,
    pool: Annotated[
        Pooling | None,
        typer.Option("--pool", "--pooling", help="sentence: how tokens become one vector. Usual: mean."),
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
    from unmask.interop.hf.save import export_hf as write
    from unmask.loading.open_model import is_finetuned, open_model

    extras = _extras(form, pool, normalise, onnx)
    if is_finetuned(source):
        _export_tuned(source, out, form, extras, network)
        return
    opened = open_model(source, checkpoint)
    model = _model(form, opened)
    architecture = _architecture(form, model, opened)
    proof = write(model, opened.tokenizer, out, architecture, opened.info, extras=extras)
    _print_result(out, architecture, proof)
    if opened.heads_left_out and form is ExportForm.WHOLE:
        _print_heads_left_out(opened.heads_left_out)
    if opened.generator is not None and model is opened.model:
        _print_generator_note()


def _extras(form: ExportForm, pool: Pooling | None, normalise: bool, onnx: bool) -> list[ExtraFormat]:
    """The files beside the usual ones; refuses an option that would be of no use."""
    from unmask.core.errors import InputError
    from unmask.interop.onnx.export import OnnxFormat
    from unmask.interop.sentence_transformers import SentenceTransformersFormat

    if form is ExportForm.SENTENCE:
        return [SentenceTransformersFormat(pool or Pooling.MEAN, normalise), *([OnnxFormat()] if onnx else [])]
    if pool is not None or normalise:
        raise InputError("--pool and --normalise say how a text becomes one vector: they go with --as sentence.")
    return [OnnxFormat()] if onnx else []


def _export_tuned(source: Path, out: Path, form: ExportForm, extras: list[ExtraFormat], network: Path | None) -> None:
    from unmask.core.errors import InputError
    from unmask.finetuning.export.hf import export_finetuned, open_finetuned
    from unmask.finetuning.export.hf_architecture import architecture_for
    from unmask.interop.hf.model_map import HFTask

    if (
        form is ExportForm.CLASSIFIER
        and architecture_for(open_finetuned(source, network))[0].task is not HFTask.CLASSIFIER
    ):
        raise InputError(f"{source} was tuned for a task that is no classification of rows; leave --as out.")
    if form not in (ExportForm.WHOLE, ExportForm.CLASSIFIER):
        raise InputError(
            f"{source} was tuned for a task and is written as what answers that task, not --as {form}; leave --as "
            "out, or name the network that it was tuned from."
        )
    _print_result(out, *export_finetuned(source, out, extras=extras, network=network))


def _model(form: ExportForm, opened: LoadedNetwork) -> EncoderWithHeads:
    """The network to write: the one that was trained, or the generator that was trained beside it."""
    return opened.generator if form is ExportForm.GENERATOR and opened.generator is not None else opened.model


def _architecture(form: ExportForm, model: EncoderWithHeads, opened: LoadedNetwork) -> Architecture:
    """The class to write for; refuses one that the dialect does not have, or that needs a head which is not there."""
    from unmask.core.errors import InputError
    from unmask.interop.hf.lookup import best_architecture, model_map, model_type_for, parts_of
    from unmask.interop.hf.model_map import Architecture, HFTask

    if form is ExportForm.CLASSIFIER:
        raise InputError("--as classifier needs a network that was tuned for a task: unmask tune makes one.")
    dialect = model_type_for(model.config, opened.model_type)
    fits = best_architecture(model, dialect)
    if form is ExportForm.WHOLE:
        return fits
    named = Architecture(dialect, _purpose(form))
    known = HFTask.DISCRIMINATOR in model_map(dialect).heads_by_task if form is ExportForm.GENERATOR else True
    if not known or named.task not in model_map(dialect).heads_by_task:
        raise InputError(
            f"--as {form}: {model_map(dialect).name} has no class for that. This network can be written as "
            f"{fits.article} {fits}: leave --as out."
        )
    parts = parts_of(named)
    missing = ["a head for tokens"] * (parts.has_lm_head and model.lm_head is None)
    missing += ["a head for rows"] * ("row.classify" in parts.layers and model.row_head is None)
    missing += ["a head for replaced tokens"] * ("replaced.dense" in parts.layers and model.discriminator_head is None)
    if missing:
        other = " Its generator has one: --as generator." if opened.generator is not None else ""
        raise InputError(
            f"--as {form} writes {named.article} {named}, which needs {' and '.join(missing)}, and this network has "
            f"none. It can be written as {fits.article} {fits}: leave --as out.{other}"
        )
    return named


def _purpose(form: ExportForm) -> HFTask:
    from unmask.interop.hf.model_map import HFTask

    return {
        ExportForm.PRETRAINING: HFTask.PRE_TRAINING,
        ExportForm.MASKED_LM: HFTask.MASKED_LM,
        ExportForm.GENERATOR: HFTask.MASKED_LM,
        ExportForm.DISCRIMINATOR: HFTask.DISCRIMINATOR,
        ExportForm.ENCODER: HFTask.ENCODER,
        ExportForm.SENTENCE: HFTask.ENCODER,
    }[form]


def _print_result(out: Path, architecture: Architecture, proof: ParityReport) -> None:
    from unmask.cli.ui.console import print_line

    print_line(f"{out}: {architecture.article} {architecture} with its tokenizer and a card")
    for note in proof.notes:
        print_line(f"note: {note}")
    print_line(
        f"proven: transformers {proof.version} and unmask agree on {proof.num_rows} rows of {proof.num_tokens:,} tokens; "
        f"hidden states differ by at most {proof.max_hidden_difference:.1e}, logits by {proof.max_logits_difference:.1e}"
    )
    for other in proof.format_checks:
        print_line(f"proven: {other}")


def _print_heads_left_out(heads: Sequence[str]) -> None:
    from unmask.cli.ui.console import print_line

    many = "Heads that have" if len(heads) > 1 else "A head that has"
    print_line(f"note: {many} no class in transformers and stayed behind: {', '.join(heads)}.")


def _print_generator_note() -> None:
    from unmask.cli.ui.console import print_line

    print_line("note: this is the discriminator. Its generator, which fills masks, can be had with --as generator.")

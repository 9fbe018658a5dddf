"""Export of a model to a Hugging Face folder, with sentence-transformers and ONNX files on request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError

if TYPE_CHECKING:
    from unmask.api.models import Model
    from unmask.interop.extra_format import ExtraFormat
    from unmask.interop.hf.model_map import Architecture, HFTask
    from unmask.interop.hf.parity_check import ParityReport
    from unmask.loading.open_model import LoadedNetwork
    from unmask.nets.model import EncoderWithHeads


class ExportForm(StrEnum):
    """The class of the exported model."""

    WHOLE = "whole"
    """All heads that the class has a place for."""
    PRETRAINING = "pretraining"
    MASKED_LM = "masked-lm"
    ENCODER = "encoder"
    SENTENCE = "sentence"
    """One vector for each text, for sentence-transformers."""
    CLASSIFIER = "classifier"
    DISCRIMINATOR = "discriminator"
    """ELECTRA: the network that detects replaced tokens."""
    GENERATOR = "generator"
    """ELECTRA: the small network that fills masks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The form of an export, and further formats."""

    form: ExportForm = ExportForm.WHOLE
    pooling: Pooling | None = None
    """For the form "sentence"; None: mean."""
    normalize: bool = False
    """For the form "sentence": scale every vector to length 1."""
    onnx: bool = False

    def extra_formats(self) -> list[ExtraFormat]:
        """The files in addition to those of transformers."""
        from unmask.interop.onnx.export import OnnxFormat
        from unmask.interop.sentence_transformers import SentenceTransformersFormat

        onnx: list[ExtraFormat] = [OnnxFormat()] if self.onnx else []
        if self.form is ExportForm.SENTENCE:
            return [SentenceTransformersFormat(self.pooling or Pooling.MEAN, self.normalize), *onnx]
        if self.pooling is not None or self.normalize:
            raise InputError("--pooling and --normalize describe sentence vectors: they go with --as sentence.")
        return onnx


@dataclass(frozen=True, slots=True)
class ExportResult:
    """An exported folder: its class, the comparison of both libraries, and the heads that were left out."""

    folder: Path
    architecture: Architecture
    parity: ParityReport
    heads_left_out: tuple[str, ...] = ()
    has_generator: bool = False
    """Whether the run also trained a generator that was not exported (ELECTRA)."""


def export_model(model: Model, out: Path, options: ExportOptions) -> ExportResult:
    """Write a pre-trained model in the chosen form; the folder is kept only if both libraries agree."""
    from unmask.interop.hf.save import export_hf

    extras, opened, form = options.extra_formats(), model.loaded, options.form
    network = opened.generator if form is ExportForm.GENERATOR and opened.generator is not None else opened.model
    architecture = _architecture(form, network, opened)
    parity = export_hf(network, opened.tokenizer, out, architecture, opened.info, extras=extras)
    left_out = opened.heads_left_out if form is ExportForm.WHOLE else ()
    return ExportResult(out, architecture, parity, left_out, opened.generator is not None and network is opened.model)


def export_finetuned_model(source: Path, out: Path, options: ExportOptions, base: Path | None = None) -> ExportResult:
    """Write a fine-tuned model with its task head."""
    from unmask.finetuning.export.hf import export_finetuned, open_finetuned
    from unmask.finetuning.export.hf_architecture import architecture_for
    from unmask.interop.hf.model_map import HFTask

    extras, form = options.extra_formats(), options.form
    if (
        form is ExportForm.CLASSIFIER
        and architecture_for(open_finetuned(source, base))[0].task is not HFTask.CLASSIFIER
    ):
        raise InputError(f"{source} was fine-tuned for a task that is no classification of rows; leave --as out.")
    if form not in (ExportForm.WHOLE, ExportForm.CLASSIFIER):
        raise InputError(
            f"{source} was fine-tuned for a task and is written with the head of that task, not --as {form}; leave "
            "--as out, or name the model that it was fine-tuned from."
        )
    return ExportResult(out, *export_finetuned(source, out, extras=extras, network=base))


def _architecture(form: ExportForm, model: EncoderWithHeads, opened: LoadedNetwork) -> Architecture:
    """The class to write for; refuses one that the dialect does not have, or that needs a head which is not there."""
    from unmask.interop.hf.lookup import best_architecture, model_map, model_type_for, parts_of
    from unmask.interop.hf.model_map import Architecture, HFTask

    if form is ExportForm.CLASSIFIER:
        raise InputError("--as classifier needs a network that was fine-tuned for a task: unmask finetune makes one.")
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
    missing += ["a head for rows"] * ("row_head.classify" in parts.layers and model.row_head is None)
    missing += ["a head for replaced tokens"] * (
        "discriminator_head.dense" in parts.layers and model.discriminator_head is None
    )
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

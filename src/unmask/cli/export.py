"""`export`: a model as a folder that transformers loads, with a comparison of both libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask.api.export import ExportForm
from unmask.config.inference import CheckpointChoice
from unmask.config.pooling import Pooling

if TYPE_CHECKING:
    from unmask.api.export import ExportResult


def export(
    source: Annotated[Path, typer.Argument(help="A folder of pretrain or tune, or a Hugging Face folder.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; it must not exist, or be empty.")],
    form: Annotated[
        ExportForm, typer.Option("--as", help="What to write; whole leaves nothing behind. A tuned network is whole.")
    ] = ExportForm.WHOLE,
    checkpoint: Annotated[CheckpointChoice, typer.Option(help="Which checkpoint of a run.")] = CheckpointChoice.LAST,
    pooling: Annotated[
        Pooling | None, typer.Option(help="sentence: how token states become one vector; default: mean.")
    ] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="sentence: scale vectors to length 1.")] = False,
    onnx: Annotated[bool, typer.Option("--onnx", help="Also write model.onnx, for programs without torch.")] = False,
    base: Annotated[
        Path | None,
        typer.Option("--base-model", help="The folder of the pre-trained model (LoRA, adapters), if it was moved."),
    ] = None,
) -> None:
    """Write a folder that transformers loads with no remote code, and prove that both read the same numbers.

    Examples:

        unmask export runs/bert exported/

        unmask export runs/bert masked/ --as masked-lm --checkpoint best

        unmask export tuned/ classifier/

        unmask export runs/bert sentences/ --as sentence --pooling mean --normalize

        unmask export runs/bert encoder/ --as encoder --onnx

        unmask export runs/electra generator/ --as generator
    """
    from unmask.api.export import ExportOptions, export_finetuned_model, export_model
    from unmask.api.models import Model
    from unmask.loading.open_model import is_finetuned

    options = ExportOptions(form=form, pooling=pooling, normalize=normalize, onnx=onnx)
    if is_finetuned(source):
        _print_result(export_finetuned_model(source, out, options, base))
    else:
        options.extra_formats()  # refuse an option of no effect before the model is read
        _print_result(export_model(Model.open(source, checkpoint), out, options))


def _print_result(result: ExportResult) -> None:
    from unmask.cli.ui.console import print_line

    parity = result.parity
    print_line(f"{result.folder}: {result.architecture.article} {result.architecture} with its tokenizer and a card")
    for note in parity.notes:
        print_line(f"note: {note}")
    print_line(
        f"checked: transformers {parity.version} and unmask agree on {parity.num_rows} rows of {parity.num_tokens:,} "
        f"tokens; hidden states differ by at most {parity.max_hidden_difference:.1e}, logits by "
        f"{parity.max_logits_difference:.1e}"
    )
    for other in parity.format_checks:
        print_line(f"checked: {other}")
    if result.heads_left_out:
        print_line(f"note: heads that have no class in transformers were left out: {', '.join(result.heads_left_out)}.")
    if result.has_generator:
        print_line("note: this is the discriminator. The generator, which fills masks, is exported by --as generator.")

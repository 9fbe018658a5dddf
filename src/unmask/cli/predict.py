"""`predict`: predictions of a fine-tuned model for the rows of a file, printed or as .jsonl, .tsv or .json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer


def predict(
    tuned: Annotated[Path, typer.Argument(help="A folder of finetune.")],
    questions: Annotated[Path, typer.Argument(help="A file with the same text columns; labels are not read.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write: .jsonl; .tsv as GLUE wants it; .json as SQuAD and CMRC do.")
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option("--base-model", help="The folder of the pre-trained model (LoRA, adapters), if it was moved."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.")] = "auto",
) -> None:
    """Predict the labels of a file with a fine-tuned model. Without --out the predictions are printed.

    Examples:

        unmask predict tuned/ new.jsonl

        unmask predict tuned/ test.jsonl --out answers.tsv
    """
    import json

    from unmask.cli.ui.console import print_line
    from unmask.core.errors import InputError
    from unmask.core.io.atomic import write_text
    from unmask.finetuning.export.hf import open_finetuned
    from unmask.finetuning.task_data import read_examples
    from unmask.train.run_config import pick_device

    if out is not None and out.suffix not in (".jsonl", ".tsv", ".json"):
        raise InputError(f"--out {out}: the name should end with .jsonl, .tsv or .json, which decides the format.")
    answers = open_finetuned(tuned, base)
    answers.learner.to(pick_device(device))
    sheet = read_examples(questions, answers.task.task_type, answers.columns, truths=False)
    examples = [example.to_json() for example in sheet.examples]
    predictions = [answer.to_json() for answer in answers.predict(sheet)]
    if out is None:
        for row, line in zip(examples, predictions, strict=True):
            print_line(json.dumps({**row, **line}, ensure_ascii=False))
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, _format_predictions(out.suffix, examples, predictions))
    print_line(f"{len(predictions):,} predictions are in {out}.", stderr=True)


def _format_predictions(
    form: str, examples: Sequence[Mapping[str, object]], predictions: Sequence[Mapping[str, object]]
) -> str:
    """All answers in one of the three forms."""
    import json

    pairs = list(zip(examples, predictions, strict=True))
    if form == ".json":
        named = {str(row.get("id", number)): line["prediction"] for number, (row, line) in enumerate(pairs)}
        return json.dumps(named, ensure_ascii=False, indent=1) + "\n"
    if form == ".tsv":
        cells = (f"{number}\t{_cell(line['prediction'])}\n" for number, line in enumerate(predictions))
        return "index\tprediction\n" + "".join(cells)
    return "".join(json.dumps({**row, **line}, ensure_ascii=False) + "\n" for row, line in pairs)


def _cell(value: object) -> str:
    """An answer in one cell of a table."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

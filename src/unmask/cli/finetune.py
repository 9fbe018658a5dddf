"""`finetune`: from a pre-trained model and a task file to a model of the task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_TASK, _METHOD, _RUN = "Task", "Method", "Device"


def finetune(
    source: Annotated[
        Path,
        typer.Argument(
            help="A run of pretrain, or a Hugging Face folder of a BERT, RoBERTa, ALBERT, ERNIE 1.0 or ELECTRA."
        ),
    ],
    train_file: Annotated[Path, typer.Option(help="Training rows: .jsonl .csv .tsv .json .conll, also with .gz.")],
    out: Annotated[Path, typer.Option(help="The folder to make; the same command resumes in it.")],
    dev_file: Annotated[
        Path | None, typer.Option(help="Rows to evaluate on; without it, a tenth of the training texts.")
    ] = None,
    epochs: Annotated[float, typer.Option(help="Passes over the training rows.")] = 3.0,
    lr: Annotated[
        float | None, typer.Option(help="The peak learning rate. Default: 5e-5 (full); for small models also 3e-4.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in a step.")] = 32,
    max_length: Annotated[
        int | None, typer.Option(min=4, help="Most tokens in a row; longer ones are cut. Default: 128; span-qa: 384.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the new head, the order of rows and the dropout.")] = 0,
    task_type: Annotated[
        Literal[
            "auto",
            "classification",
            "multilabel",
            "regression",
            "tagging",
            "span-qa",
            "multiple-choice",
            "ranking",
            "san-pair",
            "generation",
        ],
        typer.Option(help="auto: the file decides.", rich_help_panel=_TASK),
    ] = "auto",
    text_columns: Annotated[
        str, typer.Option(help="The columns of the text, with commas. Numbers: no header.", rich_help_panel=_TASK)
    ] = "",
    label_column: Annotated[str, typer.Option(help="The column of the label.", rich_help_panel=_TASK)] = "",
    pooling: Annotated[
        Literal["first", "mean", "attention"] | None,
        typer.Option(help="How token states become one vector per row. Default: first.", rich_help_panel=_TASK),
    ] = None,
    crf: Annotated[
        bool, typer.Option("--crf", help="tagging: a conditional random field.", rich_help_panel=_TASK)
    ] = False,
    constrained_tags: Annotated[
        bool, typer.Option("--constrained-tags", help="tagging: only legal tag sequences.", rich_help_panel=_TASK)
    ] = False,
    max_answer_tokens: Annotated[
        int | None, typer.Option(min=1, help="span-qa: most tokens of an answer.", rich_help_panel=_TASK)
    ] = None,
    max_candidates: Annotated[
        int | None, typer.Option(min=2, help="ranking: most candidates in a step. Default: 16.", rich_help_panel=_TASK)
    ] = None,
    decoder: Annotated[
        Literal["new", "encoder"] | None,
        typer.Option(
            help="generation: a new decoder, or the encoder as a prefix language model (default).",
            rich_help_panel=_TASK,
        ),
    ] = None,
    num_beams: Annotated[
        int | None, typer.Option(min=1, max=64, help="generation: beam width. Default: 4.", rich_help_panel=_TASK)
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=2, help="generation: most tokens of a text. Default: 64.", rich_help_panel=_TASK)
    ] = None,
    method: Annotated[
        Literal["full", "frozen", "layers", "adapter", "lora", "norms", "top", "gradual"],
        typer.Option(help="Which parameters are trained.", rich_help_panel=_METHOD),
    ] = "full",
    layer_lr_decay: Annotated[
        float | None,
        typer.Option(help="full, gradual: the rate of a layer relative to the layer above.", rich_help_panel=_METHOD),
    ] = None,
    adapter_width: Annotated[
        int | None, typer.Option(min=1, help="adapter: its bottleneck. Default: 64.", rich_help_panel=_METHOD)
    ] = None,
    num_top_blocks: Annotated[
        int | None, typer.Option(min=0, help="top: blocks that are trained. Default: 1.", rich_help_panel=_METHOD)
    ] = None,
    lora_rank: Annotated[
        int | None, typer.Option(min=1, help="lora: its rank. Default: 8.", rich_help_panel=_METHOD)
    ] = None,
    train_encoder: Annotated[
        bool | None, typer.Option("--train-encoder", help="layers: train the encoder, too.", rich_help_panel=_METHOD)
    ] = None,
    cache_features: Annotated[
        bool | None,
        typer.Option(
            "--cache-features/--no-cache-features",
            help="frozen, layers: compute the features of a row once.",
            rich_help_panel=_METHOD,
        ),
    ] = None,
    lm_weight: Annotated[
        float, typer.Option(help="The weight of an auxiliary masked-LM loss (GPT: 0.5).", rich_help_panel=_METHOD)
    ] = 0.0,
    dropout: Annotated[float | None, typer.Option(help="Default: that of the model.", rich_help_panel=_METHOD)] = None,
    from_scratch: Annotated[
        bool,
        typer.Option("--from-scratch", help="Initialise all weights randomly: a baseline.", rich_help_panel=_METHOD),
    ] = False,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.", rich_help_panel=_RUN)
    ] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="The floating-point type.", rich_help_panel=_RUN)
    ] = "auto",
    cuda_graphs: Annotated[
        Literal["auto", "on", "off"], typer.Option(help="Record whole steps as CUDA graphs.", rich_help_panel=_RUN)
    ] = "auto",
    no_kernels: Annotated[
        bool, typer.Option("--no-kernels", help="Without the Triton kernels.", rich_help_panel=_RUN)
    ] = False,
) -> None:
    """Fine-tune a pre-trained model on a task. An interrupted run resumes with the same command.

    Examples:

        unmask finetune runs/bert --train-file train.jsonl --dev-file dev.jsonl --out tuned/

        unmask finetune runs/bert --train-file reviews.csv --out reviews/ --epochs 3 --lr 5e-5 --batch-size 32

        unmask finetune runs/bert --train-file pairs.tsv --text-columns question1,question2 --label-column same --out p/

        unmask finetune runs/bert --train-file names.conll --method adapter --adapter-width 32 --out names/
    """
    from unmask.config.inference import BeamSearch, DecoderKind, GenerationConfig
    from unmask.config.pooling import Pooling
    from unmask.finetuning.data.columns import ColumnChoice
    from unmask.finetuning.methods.by_name import method_by_name
    from unmask.finetuning.task_data import load_task_data
    from unmask.finetuning.task_options import TaskOptions, check_options, parse_task_type

    task_options = TaskOptions(
        task_type=parse_task_type(task_type),
        columns=ColumnChoice.parse(text_columns, label_column),
        pooling=Pooling(pooling or "first"),
        crf=crf,
        constrained_tags=constrained_tags,
        max_answer_tokens=max_answer_tokens,
        max_candidates=max_candidates or 16,
        generation=GenerationConfig(
            decoder=DecoderKind(decoder or "encoder"),
            beam_search=BeamSearch(num_beams=num_beams or 4, max_new_tokens=max_new_tokens or 64),
        ),
    )
    given = {
        "layer_lr_decay": layer_lr_decay,
        "width": adapter_width,
        "num_blocks": num_top_blocks,
        "rank": lora_rank,
        "train_encoder": train_encoder,
        "cache_features": cache_features,
    }
    chosen = method_by_name(method, {name: value for name, value in given.items() if value is not None})
    data = load_task_data(train_file, dev_file, task_options, seed)
    of_one_type: dict[str, object] = {
        "--pooling": pooling,
        "--crf": crf,
        "--constrained-tags": constrained_tags,
        "--max-answer-tokens": max_answer_tokens,
        "--max-candidates": max_candidates,
        "--decoder": decoder,
        "--num-beams": num_beams,
        "--max-new-tokens": max_new_tokens,
    }
    check_options(data.task.task_type, {name: bool(value) for name, value in of_one_type.items()})

    from unmask.api.finetune import FineTuneOptions, run_finetune
    from unmask.cli.ui.console import explain_interrupt, is_main_process
    from unmask.cli.ui.progress import TerminalReporter
    from unmask.cli.ui.score_tables import print_scores

    options = FineTuneOptions(
        epochs=epochs,
        lr=lr,
        batch_size=batch_size,
        max_length=max_length,
        seed=seed,
        from_scratch=from_scratch,
        lm_weight=lm_weight,
        dropout=dropout,
        device=device,
        precision=precision,
        cuda_graphs=cuda_graphs,
        no_kernels=no_kernels,
    )
    with explain_interrupt(out):
        run_finetune(source, data, chosen, out, options, TerminalReporter())
    if is_main_process():
        print_scores(out, data)

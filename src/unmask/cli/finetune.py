"""`tune`: a network and a task file in, a network that answers the task out.

What arrives: the folder of a network, task files, settings. What leaves: a folder with the tuned network, its answers
to the rows it never learned from, and its scores.
What never happens here: the work; see `unmask.finetuning` and `unmask.train`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

_ASKED, _MOVES, _RUNS = "What is asked", "What moves", "How it runs"


def tune(
    source: Annotated[
        Path,
        typer.Argument(
            help="The network: a run of pretrain, or a Hugging Face folder of a BERT, RoBERTa, ALBERT, ERNIE 1.0 or "
            "ELECTRA."
        ),
    ],
    task: Annotated[Path, typer.Option(help="Rows to learn from: .jsonl .csv .tsv .json .conll, also with .gz.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    dev: Annotated[Path | None, typer.Option(help="Rows to judge by; without it, 1 text in 10 is set aside.")] = None,
    epochs: Annotated[float, typer.Option(help="How often every row is learned from.")] = 3.0,
    rate: Annotated[
        float | None, typer.Option(help="The highest learning rate. Usual: 5e-5 (full); for small networks also 3e-4.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Questions in a step.")] = 32,
    length: Annotated[
        int | None, typer.Option(min=4, help="Most tokens in a row; longer ones are cut. Usual: 128; spans: 384.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the new head, the order and the dropout.")] = 0,
    kind: Annotated[
        Literal["auto", "classify", "labels", "regress", "tag", "span", "choose", "rank", "pair", "write"],
        typer.Option(help="What is said about a row; auto: the file decides.", rich_help_panel=_ASKED),
    ] = "auto",
    fields: Annotated[
        str, typer.Option(help="The fields of the text, with commas. Numbers: no header.", rich_help_panel=_ASKED)
    ] = "",
    label: Annotated[str, typer.Option(help="The field of the label.", rich_help_panel=_ASKED)] = "",
    read: Annotated[
        Literal["first", "mean", "attention"] | None,
        typer.Option(help="Which tokens speak for a row. Usual: first.", rich_help_panel=_ASKED),
    ] = None,
    crf: Annotated[
        bool, typer.Option("--crf", help="Tags: choose those of a sentence together.", rich_help_panel=_ASKED)
    ] = False,
    legal: Annotated[
        bool, typer.Option("--legal", help="Tags: only those that may follow each other.", rich_help_panel=_ASKED)
    ] = False,
    longest: Annotated[
        int | None, typer.Option(min=1, help="Spans: most tokens of an answer.", rich_help_panel=_ASKED)
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(min=2, help="Rank: most candidates in a step. Usual: 16.", rich_help_panel=_ASKED)
    ] = None,
    version: Annotated[
        Literal["1", "2"] | None,
        typer.Option(help="Write: with a new decoder (1), or the encoder itself (2, usual).", rich_help_panel=_ASKED),
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, max=64, help="Write: texts searched at once. Usual: 4.", rich_help_panel=_ASKED)
    ] = None,
    most: Annotated[
        int | None, typer.Option(min=2, help="Write: most tokens of a text. Usual: 64.", rich_help_panel=_ASKED)
    ] = None,
    policy: Annotated[
        Literal["full", "frozen", "layers", "adapter", "lora", "norms", "top", "gradual"],
        typer.Option(help="What may move.", rich_help_panel=_MOVES),
    ] = "full",
    decay: Annotated[
        float | None, typer.Option(help="full, gradual: the rate of a layer by that above it.", rich_help_panel=_MOVES)
    ] = None,
    width: Annotated[
        int | None, typer.Option(min=1, help="adapter: its width. Usual: 64.", rich_help_panel=_MOVES)
    ] = None,
    blocks: Annotated[
        int | None, typer.Option(min=0, help="top: how many blocks move. Usual: 1.", rich_help_panel=_MOVES)
    ] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="lora: its rank. Usual: 8.", rich_help_panel=_MOVES)] = None,
    move: Annotated[
        bool | None, typer.Option("--move", help="layers: let the network move, too.", rich_help_panel=_MOVES)
    ] = None,
    cache: Annotated[
        bool | None,
        typer.Option("--cache/--no-cache", help="frozen, layers: read each row once.", rich_help_panel=_MOVES),
    ] = None,
    beside: Annotated[
        float, typer.Option(help="Also fill masks, with this weight (GPT: 0.5).", rich_help_panel=_MOVES)
    ] = 0.0,
    dropout: Annotated[
        float | None, typer.Option(help="What is dropped out. Usual: what the network has.", rich_help_panel=_MOVES)
    ] = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Draw all weights anew, to compare with.", rich_help_panel=_MOVES)
    ] = False,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, mps, or auto for the fastest.", rich_help_panel=_RUNS)
    ] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="Numbers to compute in.", rich_help_panel=_RUNS)
    ] = "auto",
    graphs: Annotated[
        Literal["auto", "on", "off"],
        typer.Option(help="Whole steps as CUDA graphs; auto: on such a GPU.", rich_help_panel=_RUNS),
    ] = "auto",
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Plain code: torch's kernels, every place computed.", rich_help_panel=_RUNS),
    ] = False,
) -> None:
    """Fine-tune a network on a task: classes, numbers, tags, spans, choices, orders or texts. Starting again goes on.

    Examples:

        unmask tune runs/bert --task train.jsonl --dev dev.jsonl --out tuned/

        unmask tune runs/bert --task reviews.csv --out reviews/ --epochs 3 --rate 5e-5 --batch 32 --length 128 --seed 0

        unmask tune runs/bert --task pairs.tsv --fields question1,question2 --label same --out scratch/ --from-scratch

        unmask tune runs/bert --task names.conll --kind tag --policy adapter --width 32 --out names/
    """
    from unmask.config.inference import BeamSearch, DecoderKind, GenerationConfig
    from unmask.config.pooling import Pooling
    from unmask.finetuning.data.columns import ColumnChoice
    from unmask.finetuning.methods.by_name import method_by_name
    from unmask.finetuning.task_data import load_task_data
    from unmask.finetuning.task_options import TaskOptions, check_options, parse_task_type
    from unmask.finetuning.tasks.protocol import default_max_length

    wish = TaskOptions(
        task_type=parse_task_type(kind),
        columns=ColumnChoice.parse(fields, label),
        pooling=Pooling(read or "first"),
        crf=crf,
        constrained_tags=legal,
        max_answer_tokens=longest,
        max_candidates=candidates or 16,
        generation=GenerationConfig(
            decoder=DecoderKind(version or "2"), beam_search=BeamSearch(num_beams=beam or 4, max_new_tokens=most or 64)
        ),
    )
    given = {
        "layer_lr_decay": decay,
        "width": width,
        "num_blocks": blocks,
        "rank": rank,
        "train_encoder": move,
        "cache_features": cache,
    }
    moves = method_by_name(policy, {name: value for name, value in given.items() if value is not None})
    job = load_task_data(task, dev, wish, seed)
    options: dict[str, object] = {
        "--read": read,
        "--crf": crf,
        "--legal": legal,
        "--longest": longest,
        "--candidates": candidates,
        "--version": version,
        "--beam": beam,
        "--most": most,
    }
    check_options(job.task.task_type, {name: bool(value) for name, value in options.items()})

    from unmask.api.finetune import finetune
    from unmask.finetuning.finetune import FineTune, FineTuneSettings, choose_max_length
    from unmask.finetuning.init_weights import StartFrom, with_dropout
    from unmask.loading.open_model import open_model
    from unmask.train.distributed import init_distributed
    from unmask.train.run_config import default_run_config

    opened = open_model(source)
    how = FineTuneSettings(
        epochs=epochs,
        lr=moves.default_lr if rate is None else rate,
        batch_size=batch,
        max_length=choose_max_length(opened.model, length, default_max_length(job.task.task_type)),
        seed=seed,
        start=StartFrom.SCRATCH if from_scratch else StartFrom.PRETRAINED,
        lm_weight=beside,
    )
    run = replace(
        default_run_config(device, precision, graphs, plain), keep_checkpoints=1, num_evals=max(1, round(epochs))
    )
    model = opened.model if dropout is None else with_dropout(opened.model, dropout)
    tuning = FineTune(job, model, opened.tokenizer, how, opened.name, moves)
    with init_distributed(run.device) as processes:
        finetune(tuning, run, processes, out, source)

"""`claim`: try a published claim again with small networks, and print a verdict for each expected outcome."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

_BUDGET, _RUNS = "Budget of each network (default: 30 million tokens, or 6e14 FLOPs)", "Runs"


def claim(
    name: Annotated[str, typer.Argument(help="sop, all-tokens, sharing, spans, masking, formats or replacement.")],
    data: Annotated[Path, typer.Option(help="A prepared folder.")],
    out: Annotated[Path, typer.Option(help="The folder to make; the claim has a folder in it.")],
    task: Annotated[
        list[str] | None, typer.Option(help="NAME=TRAIN:DEV[:options of the fine-tuning]; may be repeated.")
    ] = None,
    steps: Annotated[str, typer.Option(help="Steps.", rich_help_panel=_BUDGET)] = "",
    tokens: Annotated[str, typer.Option(help="Tokens.", rich_help_panel=_BUDGET)] = "",
    hours: Annotated[str, typer.Option(help="Hours.", rich_help_panel=_BUDGET)] = "",
    flops: Annotated[str, typer.Option(help="FLOPs, such as 6e14.", rich_help_panel=_BUDGET)] = "",
    size: Annotated[str, typer.Option(help="Size of the networks.")] = "mini",
    max_length: Annotated[int, typer.Option(min=8, help="Tokens in a row, in pre-training.")] = 128,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in a step of pre-training.")] = 64,
    pretrain_args: Annotated[str, typer.Option(help="Further options for every pretrain.")] = "",
    finetune_args: Annotated[str, typer.Option(help="Options for every full fine-tuning.")] = "--epochs 3 --lr 1e-4",
    subset_tokens: Annotated[
        int | None, typer.Option(min=0, help="Repeat a part of about so many tokens; 0: the whole corpus.")
    ] = None,
    arms: Annotated[str, typer.Option(help="Only these arms, with commas.", rich_help_panel=_RUNS)] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of every arm.", rich_help_panel=_RUNS)] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.", rich_help_panel=_RUNS)] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at the same time.", rich_help_panel=_RUNS)] = 1,
    minutes: Annotated[
        float, typer.Option(help="Time limit; the same command resumes.", rich_help_panel=_RUNS)
    ] = math.inf,
) -> None:
    """Try a published claim with small networks: arms and seeds with the same budget, and a verdict.

    Finished runs are not repeated. A claim that a small run does not confirm is not thereby refuted at full size.

    Examples:

        unmask claim sop --data news --out claims --jobs 15 --minutes 4

        unmask claim masking --data news --out claims

        unmask claim all-tokens --data news --out claims --task reviews=train.jsonl:dev.jsonl --flops 5e14
    """
    from unmask.core.errors import InputError
    from unmask.lab.claims.catalog import CLAIMS
    from unmask.lab.claims.jobs import ClaimOptions
    from unmask.lab.claims.run import ClaimRequest, run_claim

    if name not in CLAIMS:
        raise InputError(f"There is no claim {name!r}. Take one of: {', '.join(CLAIMS)}.")
    budget = {"steps": steps, "tokens": tokens, "hours": hours, "flops": flops}
    options = ClaimOptions(
        data=data,
        out=out / name,
        budget={kind: value for kind, value in budget.items() if value},
        size=size,
        max_length=max_length,
        batch_size=batch_size,
        pretrain_args=pretrain_args,
        finetune_args=finetune_args,
        tasks=tuple(task or ()),
        subset_tokens=CLAIMS[name].subset_tokens if subset_tokens is None else subset_tokens,
        max_parallel=jobs,
    )
    chosen = tuple(arm for arm in arms.split(",") if arm)
    run_claim(
        ClaimRequest(
            name=name, options=options, arms=chosen, seeds=range(first_seed, first_seed + seeds), minutes=minutes
        )
    )

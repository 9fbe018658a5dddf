"""`pretrain`: from a prepared corpus to a trained network.

What arrives: a member, a prepared folder and a budget. What leaves: a run folder with checkpoints and a record.
What never happens here: the work itself; see `unmask.train`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def pretrain(
    member: Annotated[str, typer.Argument(help="A member, or your_file.py:name.")],
    data: Annotated[Path, typer.Option(help="A prepared folder.")],
    out: Annotated[Path, typer.Option(help="The folder of the run; the same command goes on in it.")],
    steps: Annotated[int | None, typer.Option(min=1, help="Train for this many steps,")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="or this many tokens,")] = None,
    hours: Annotated[float | None, typer.Option(min=0, help="or this many hours,")] = None,
    flops: Annotated[
        float | None, typer.Option(min=0, help="or for about as many steps as this many FLOPs are, e.g. 1e15.")
    ] = None,
    size: Annotated[str, typer.Option(help="tiny, mini, small, medium, base or large.")] = "",
    from_: Annotated[
        Path | None, typer.Option("--from", help="Begin with the weights of a run, an export or a Hugging Face folder.")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Rows in a step, in every stage.")] = None,
    rate: Annotated[float | None, typer.Option(help="The highest learning rate.")] = None,
    short: Annotated[
        bool, typer.Option("--short", help="For a run of minutes: rows of 32, then 128 tokens, Muon, no dropout.")
    ] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a value of the recipe: PATH=VALUE.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of all draws.")] = 0,
    held_out: Annotated[float, typer.Option(min=0, max=0.5, help="The share of the text to judge by.")] = 0.01,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps, or auto.")] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="The numbers that the network computes in.")
    ] = "auto",
    micro_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens computed at once.")] = None,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile the network first: slow start, faster steps.")
    ] = False,
    graphs: Annotated[
        Literal["auto", "on", "off"], typer.Option(help="Whole steps as CUDA graphs; auto: on such a GPU.")
    ] = "auto",
    plain: Annotated[bool, typer.Option("--plain", help="Plain code: torch's kernels, every place computed.")] = False,
    trials: Annotated[int, typer.Option(min=1, help="How often to judge on held-out text.")] = 20,
    keep: Annotated[int, typer.Option(min=1, help="Checkpoints to keep, beside the best.")] = 2,
    save_minutes: Annotated[float, typer.Option(min=0, help="Longest time between two checkpoints.")] = 10.0,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write for TensorBoard, into OUT.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it would cost, and stop.")] = False,
) -> None:
    """Pre-train a member on a prepared corpus. Kill it at any moment: the same command goes on.

    Examples:

        unmask pretrain bert --size tiny --short --data data/ --out runs/bert --hours 0.1

        unmask pretrain bert --size mini --data data/ --out runs/mini --steps 2000 --dry-run

        unmask pretrain wwm --data data/ --from exported/ --out runs/domain --tokens 100000000

        unmask pretrain bert --size tiny --short --data data/ --out runs/cheap --flops 1e14

        torchrun --nproc-per-node 2 -m unmask pretrain bert --size small --data data/ --out runs/two --steps 1000
    """
    from unmask.api.pretrain import RunOptions, run
    from unmask.api.pretrain_setup import PretrainRequest

    run(
        PretrainRequest(
            member=member,
            size=size,
            changes=tuple(set_ or ()),
            batch_size=batch,
            lr=rate,
            short=short,
            data=data,
            init_from=from_,
            seed=seed,
            heldout_fraction=held_out,
            steps=steps,
            tokens=tokens,
            hours=hours,
            flops=flops,
        ),
        RunOptions(
            out=out,
            device=device,
            precision=precision,
            microbatch_tokens=micro_tokens or 0,
            compile=compile_,
            cuda_graphs=graphs,
            no_kernels=plain,
            num_evals=trials,
            keep_checkpoints=keep,
            save_every_minutes=save_minutes,
            tensorboard=tensorboard,
            dry_run=dry_run,
        ),
    )

"""`pretrain`: from a prepared corpus to a pre-trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_RUN = "Device and checkpoints"


def pretrain(
    member: Annotated[str, typer.Argument(help="A member, or your_file.py:name.")],
    data: Annotated[Path, typer.Option(help="A prepared corpus.")],
    out: Annotated[Path, typer.Option(help="The folder of the run; the same command resumes in it.")],
    steps: Annotated[int | None, typer.Option(min=1, help="Train for this many steps,")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="or this many tokens,")] = None,
    hours: Annotated[float | None, typer.Option(min=0, help="or this many hours,")] = None,
    flops: Annotated[
        float | None, typer.Option(min=0, help="or as many steps as cost this many FLOPs, e.g. 1e15.")
    ] = None,
    size: Annotated[str, typer.Option(help="tiny, mini, small, medium, base or large.")] = "",
    preset: Annotated[
        Literal["published", "short"],
        typer.Option(help="short: for a run of minutes, with rows of 32, then 128 tokens, Muon, no dropout."),
    ] = "published",
    init_from: Annotated[
        Path | None, typer.Option(help="Start from the weights of a run, an export or a Hugging Face folder.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows in a step, in every stage.")] = None,
    lr: Annotated[float | None, typer.Option(help="The peak learning rate.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a value of the recipe: PATH=VALUE.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of all random draws.")] = 0,
    heldout_fraction: Annotated[
        float, typer.Option(min=0, max=0.5, help="The fraction of the text to evaluate on.")
    ] = 0.01,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps, or auto.", rich_help_panel=_RUN)] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="The floating-point type.", rich_help_panel=_RUN)
    ] = "auto",
    microbatch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most tokens in a microbatch.", rich_help_panel=_RUN)
    ] = None,
    compile_: Annotated[
        bool, typer.Option("--compile", help="torch.compile: slow start, faster steps.", rich_help_panel=_RUN)
    ] = False,
    cuda_graphs: Annotated[
        Literal["auto", "on", "off"], typer.Option(help="Record whole steps as CUDA graphs.", rich_help_panel=_RUN)
    ] = "auto",
    no_kernels: Annotated[
        bool, typer.Option("--no-kernels", help="Without the Triton kernels.", rich_help_panel=_RUN)
    ] = False,
    num_evals: Annotated[
        int, typer.Option(min=1, help="How often to evaluate on held-out text.", rich_help_panel=_RUN)
    ] = 20,
    keep_checkpoints: Annotated[
        int, typer.Option(min=1, help="Checkpoints to keep, besides the best.", rich_help_panel=_RUN)
    ] = 2,
    save_every_minutes: Annotated[
        float, typer.Option(min=0, help="Most minutes between two checkpoints.", rich_help_panel=_RUN)
    ] = 10.0,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write for TensorBoard, into OUT.", rich_help_panel=_RUN)
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the cost and stop.", rich_help_panel=_RUN)
    ] = False,
) -> None:
    """Pre-train a member on a prepared corpus. An interrupted run resumes with the same command.

    Examples:

        unmask pretrain bert --size tiny --preset short --data data/ --out runs/bert --hours 0.1

        unmask pretrain bert --size mini --data data/ --out runs/mini --steps 2000 --dry-run

        unmask pretrain wwm --data data/ --init-from exported/ --out runs/domain --tokens 100000000

        unmask pretrain bert --size tiny --preset short --data data/ --out runs/cheap --flops 1e14

        torchrun --nproc-per-node 2 -m unmask pretrain bert --size small --data data/ --out runs/two --steps 1000
    """
    from unmask.api.pretrain import RunOptions, run_pretrain
    from unmask.api.pretrain_setup import PretrainRequest
    from unmask.cli.ui.console import explain_interrupt, is_main_process, print_line
    from unmask.cli.ui.training_display import TerminalPretrainListener, print_summary
    from unmask.train.rundir.folder import is_finished

    request = PretrainRequest(
        member=member,
        data=data,
        size=size,
        changes=tuple(set_ or ()),
        batch_size=batch_size,
        lr=lr,
        preset=preset,
        init_from=init_from,
        seed=seed,
        heldout_fraction=heldout_fraction,
        steps=steps,
        tokens=tokens,
        hours=hours,
        flops=flops,
    )
    options = RunOptions(
        out=out,
        device=device,
        precision=precision,
        microbatch_tokens=microbatch_tokens or 0,
        compile=compile_,
        cuda_graphs=cuda_graphs,
        no_kernels=no_kernels,
        num_evals=num_evals,
        keep_checkpoints=keep_checkpoints,
        save_every_minutes=save_every_minutes,
        dry_run=dry_run,
    )
    was_finished = is_finished(out)
    with explain_interrupt(out):
        run_pretrain(request, options, TerminalPretrainListener(tensorboard))
    if dry_run or not is_main_process():
        return
    if was_finished:
        print_line(f"{out} is finished already. To train further: --init-from {out} and a new --out.")
    print_summary(out)

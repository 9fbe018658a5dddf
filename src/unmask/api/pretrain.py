"""Pre-training: the verb `pretrain` of the library, and the flow of the command.

Everything is checked before the folder of the run is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from unmask.api.pretrain_setup import Preset, PretrainRequest, PretrainSetup
from unmask.api.run import Run
from unmask.core.io.atomic import write_text
from unmask.data.corpus.corpus import Corpus
from unmask.objectives.generator import all_networks
from unmask.tasks.recipe import Recipe
from unmask.train.cost_estimate import CostEstimate, estimate_cost
from unmask.train.loop import train
from unmask.train.run_config import (
    DistContext,
    Precision,
    RunConfig,
    Switch,
    default_run_config,
    init_distributed,
    pick_microbatch,
    world_size,
)
from unmask.train.rundir.checkpoint import CHECKPOINTS, list_checkpoints
from unmask.train.rundir.folder import (
    NEW_FOLDER_ADVICE,
    check_same_run,
    is_finished,
    lock_run,
    mark_finished,
    start_or_resume,
)
from unmask.train.rundir.run_writer import Listener

_FEW = 1000
"""Fewer steps than this get a hint. Published runs have a hundred thousand and more."""
_NEW = f"{NEW_FOLDER_ADVICE} (and --init-from to start from its weights)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The folder of the run, the device, checkpoints and evaluations."""

    out: Path
    device: str = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    microbatch_tokens: int = 0
    """Most tokens in a microbatch; 0: what the memory of the device holds."""
    compile: bool = False
    cuda_graphs: Switch = "auto"
    no_kernels: bool = False
    num_evals: int = 20
    keep_checkpoints: int = 2
    save_every_minutes: float = 10.0
    dry_run: bool = False
    """Estimate the cost and stop."""

    def for_this_machine(self, recipe: Recipe) -> RunConfig:
        """The configuration of the run on this machine."""
        run = default_run_config(self.device, self.precision, self.cuda_graphs, self.no_kernels)
        run = replace(
            run, cuda_graphs=run.cuda_graphs and world_size() == 1
        )  # steps of several processes are not recorded
        return replace(
            run,
            microbatch_tokens=self.microbatch_tokens or microbatch_for(recipe, replace(run, compile=self.compile)),
            compile=self.compile,
            batch_worker_process=run.cuda_graphs
            and run.device.type == "cuda",  # such steps may be shorter than their batches
            keep_checkpoints=self.keep_checkpoints,
            save_every_minutes=self.save_every_minutes,
            num_evals=self.num_evals,
        )


class PretrainListener:
    """Receives the events of a pre-training; every method does nothing unless it is overridden."""

    def note(self, sentence: str) -> None:
        """A message."""

    def estimated(self, estimate: CostEstimate, run: RunConfig, setup: PretrainSetup) -> None:
        """The estimated cost, before the first step."""

    def started(self, setup: PretrainSetup) -> None:
        """The training begins or resumes."""

    @contextmanager
    def log_listeners(self, out: Path) -> Iterator[Sequence[Listener]]:
        """Functions that receive every line of the log, for the time of the training."""
        yield ()


class _EventListener(PretrainListener):
    """Passes the lines of the log to one function."""

    def __init__(self, on_event: Callable[[Mapping[str, Any]], object]) -> None:
        self.on_event = on_event

    @contextmanager
    def log_listeners(self, out: Path) -> Iterator[Sequence[Listener]]:
        def listen(line: Mapping[str, Any]) -> None:
            self.on_event(line)

        yield (listen,)


class PretrainKeywords(TypedDict, total=False):
    """The rarer keywords of `pretrain`; see `PretrainRequest` and `RunOptions`."""

    hours: float
    flops: float
    batch_size: int
    lr: float
    preset: Preset
    init_from: Path | None
    heldout_fraction: float
    device: str
    precision: Literal["auto", "float32", "bfloat16"]
    microbatch_tokens: int
    compile: bool
    cuda_graphs: Switch
    no_kernels: bool
    num_evals: int
    keep_checkpoints: int
    save_every_minutes: float


def pretrain(
    recipe: str | Recipe,
    corpus: Corpus | Path | str,
    *,
    out: Path | str,
    size: str = "",
    steps: int | None = None,
    tokens: int | None = None,
    seed: int = 0,
    set: Mapping[str, object] | None = None,
    on_event: Callable[[Mapping[str, Any]], object] | None = None,
    **keywords: Unpack[PretrainKeywords],
) -> Run:
    """Pre-train a member or a recipe on a prepared corpus; the same call resumes an interrupted run in `out`.

    One budget is needed: `steps`, `tokens`, `hours` or `flops`. `set` changes values of the recipe by path, such as
    {"optim.optimizer.lr": 5e-4}. `on_event` receives every line of `record.jsonl` when it is written.
    """
    options = {name: value for name, value in keywords.items() if name in RunOptions.__dataclass_fields__}
    request: dict[str, Any] = {name: value for name, value in keywords.items() if name not in options}
    return run_pretrain(
        PretrainRequest(
            member=recipe,
            data=corpus.folder if isinstance(corpus, Corpus) else Path(corpus),
            size=size,
            changes=tuple(f"{path}={value}" for path, value in (set or {}).items()),
            seed=seed,
            steps=steps,
            tokens=tokens,
            **request,
        ),
        RunOptions(out=Path(out), **options),  # type: ignore[arg-type]
        _EventListener(on_event) if on_event is not None else SILENT_LISTENER,
    )


SILENT_LISTENER = PretrainListener()


def run_pretrain(request: PretrainRequest, options: RunOptions, listener: PretrainListener = SILENT_LISTENER) -> Run:
    """Pre-train as requested, with an estimate before the first step. All processes of a distributed run call this."""
    setup, out = PretrainSetup(request), options.out
    run = options.for_this_machine(setup.recipe)
    if request.init_from:
        listener.note(f"loading the model in {request.init_from} ...")
    if not options.dry_run:
        check_same_run(out, setup.description(), _NEW)  # before the corpus is planned, which may take a while
    with init_distributed(run.device) as dist:
        setup.batch_source.check(dist.rank_split(run.microbatch_tokens))
        if not dist.is_main:
            listener = SILENT_LISTENER
        if setup.heads_from_scratch:
            listener.note(
                f"note: {request.init_from} has no weights for: {', '.join(setup.heads_from_scratch)}. These heads "
                "are initialised randomly."
            )
        if options.dry_run:
            _estimate(setup, run, dist, listener)
        else:
            with lock_run(out) if dist.is_main else nullcontext():
                _begin_or_resume(setup, run, dist, out, listener)
    return Run(out)


def microbatch_for(recipe: Recipe, run: RunConfig, num_sharing: int = 1) -> int:
    """How many tokens are computed at once by each of so many runs that share a device.

    Captured steps have their own memory, in addition to that of steps with a new shape.
    """
    held = sum(config.activation_bytes(run.uses_kernels) for config in all_networks(recipe.network, recipe.objectives))
    twice = (run.precision is Precision.FLOAT32, run.cuda_graphs)
    return pick_microbatch(run.device, held * 2 ** sum(twice) * num_sharing)


def _begin_or_resume(
    setup: PretrainSetup, run: RunConfig, dist: DistContext, out: Path, listener: PretrainListener
) -> None:
    """Train unless the run is finished. The first process writes the folder."""
    if dist.is_main:
        start_or_resume(out, setup.description(), _NEW)
        if not (out / "tokenizer.json").exists():
            write_text(out / "tokenizer.json", (setup.request.data / "tokenizer.json").read_text(encoding="utf-8"))
    dist.barrier()
    if is_finished(out):
        return
    if not list_checkpoints(out / CHECKPOINTS):
        _estimate(setup, run, dist, listener)
    listener.started(setup)
    with listener.log_listeners(out) as listeners:
        observers = [setup.sample_fills] if setup.predicts_tokens else []
        state = train(setup.training_spec, run, dist, out, listeners, observers)
    dist.barrier()
    if dist.is_main:
        mark_finished(out, state.describe())


def _estimate(setup: PretrainSetup, run: RunConfig, dist: DistContext, listener: PretrainListener) -> None:
    listener.note("measuring a few steps ...")
    found = estimate_cost(setup.training_spec, run, dist, setup.cost_probes())
    listener.estimated(found, run, setup)
    if found.steps < _FEW and setup.request.preset != "short":
        listener.note(
            f"note: these are only about {found.steps:,.0f} steps, and published recipes are made for many thousands. "
            "A run of minutes learns more with --preset short: see docs/guides/pretrain.md."
        )

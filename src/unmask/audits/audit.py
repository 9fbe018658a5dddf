"""The audit of a member, or of a single task, on a prepared corpus.

Rows are read as in training; nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask.audits.finding import Finding, Findings, Histogram, Numbers, Section
from unmask.audits.measures_for import rule_measures, task_measures
from unmask.audits.row_checks import distinct_draws
from unmask.audits.rows import AuditSource, Measure
from unmask.core.errors import CorpusError, RecipeError
from unmask.core.io.atomic import read_json
from unmask.core.records import UnitKind
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.corrupt.compose import NoiseSequence
from unmask.data.corrupt.document_rotation import DocumentRotation
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.corrupt.protocol import Corruption
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.input_formats.row_plan import DynamicMasking, MaskingMode
from unmask.tasks.recipe import Recipe, Task

ROWS = 2000
"""The default number of rows: a second of work, and fractions within half a point."""
LENGTH = 512
"""The row length of a task without a stage."""


def audit(
    subject: Recipe | Task,
    corpus: Corpus,
    key: Key,
    rows: int = ROWS,
    lengths: Sequence[int] = (),
    extra: Sequence[Measure] = (),
) -> Findings:
    """Measure what a recipe or a task does to this corpus.

    Every task is audited at the row lengths of its stages, or at `lengths` if given. `extra` measures are added to
    every task.
    """
    if isinstance(subject, Recipe):
        subject.check_corpus(corpus.layers, str(corpus.folder))
        places = [(task, stage.max_length) for stage in subject.stages for task in stage.tasks]
        tasks, renew = subject.tasks, subject.masking
    else:
        _check_units(subject, corpus)
        places, tasks, renew = [(subject, LENGTH)], (subject,), DynamicMasking()
    if lengths:
        places = [(task, length) for length in lengths for task in tasks]
    sections = [
        section
        for task, length in dict.fromkeys(places)
        for section in _sections(task, _source(task, corpus, length, renew, key), length, rows, extra)
    ]
    return Findings(subject.name, tuple(sections))


def _source(task: Task, corpus: Corpus, length: int, renew: MaskingMode, key: Key) -> AuditSource:
    source = AuditSource.of(corpus, task.examples, length, renew, key.fold_in(task.name))
    if not len(source.plan):
        raise CorpusError(
            f"The corpus in {corpus.folder} gives task '{task.name}' no row at all. It has "
            f"{corpus.manifest.counts.tokens:,} tokens; prepare more text."
        )
    return source


def _sections(task: Task, source: AuditSource, length: int, rows: int, extra: Sequence[Measure]) -> Iterator[Section]:
    """The task as a whole, and each step of a sequence."""
    corrupt = task.corruption
    again = () if isinstance(corrupt, NoCorruption) else (_distinct_draws(source, corrupt),)
    yield _section(task.name, source, length, rows, (corrupt, (*task_measures(task, length), *extra)), again)
    for step in corrupt.steps if isinstance(corrupt, NoiseSequence) else ():
        yield _section(
            f"{task.name}: {type(step).__name__} alone", source, length, rows, (step, rule_measures(step)), ()
        )


def _section(
    name: str,
    source: AuditSource,
    length: int,
    rows: int,
    part: tuple[Corruption, Sequence[Measure]],
    again: tuple[Finding, ...],
) -> Section:
    """Count on every batch, sum, and derive findings."""
    corrupt, measures = part
    totals: list[Numbers] = []
    tokens = 0
    for batch in source.batches(corrupt, rows):
        counted = [measure.count(batch) for measure in measures]
        totals = [old + new for old, new in zip(totals, counted, strict=True)] if totals else counted
        tokens += len(batch.example.ids)
    outputs = [one for measure, total in zip(measures, totals, strict=True) for one in measure.to_findings(total)]
    found = tuple(one for one in outputs if isinstance(one, Finding))
    drawn = tuple(one for one in outputs if isinstance(one, Histogram))
    return Section(name, length, min(rows, len(source.plan)), tokens, (*found, *again), drawn)


def _distinct_draws(source: AuditSource, corrupt: Corruption) -> Finding:
    return distinct_draws(
        source, corrupt, source.visits.masking, not isinstance(corrupt, PermuteSentences | DocumentRotation)
    )


def _check_units(task: Task, corpus: Corpus) -> None:
    missing = task.required_units - corpus.layers
    if missing:
        layers = ",".join(sorted(missing & {UnitKind.PHRASE, UnitKind.ENTITY}))
        raise RecipeError(
            f"The rule '{task.name}' reads {', '.join(sorted(missing))} units, but the corpus in {corpus.folder} was "
            f"prepared with {', '.join(sorted(corpus.layers))} only. Prepare it again with: unmask prepare CORPUS "
            + (f"--units {layers} " if layers else "")
            + "--out NEW_FOLDER"
        )


def vocabulary_mismatch(recipe: Recipe, folder: Path) -> str:
    """A sentence if the corpus has another kind of vocabulary than the recipe; empty if not."""
    found = vocabulary_kind(read_json(folder / "tokenizer.json"))
    if found == vocabulary_kind(json.loads(recipe.tokenizer.untrained_pipeline().to_str())):
        return ""
    return (
        f"{folder} has a {found} vocabulary; {recipe.name}'s is {type(recipe.tokenizer).__name__} "
        f"(prepare --for {recipe.name})"
    )


def vocabulary_kind(content: dict[str, Any]) -> str:
    """The kind of a `tokenizer.json`: its model, and whether it is byte-level."""
    model = str(content["model"]["type"])
    steps = content["pre_tokenizer"] or {}
    spells_bytes = any(step["type"] == "ByteLevel" for step in steps.get("pretokenizers", [steps] if steps else []))
    return f"Byte{model}" if spells_bytes else model

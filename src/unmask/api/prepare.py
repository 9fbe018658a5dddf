"""Preparation of a corpus: the verb `prepare` of the library, and the flow of the command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from unmask.api.prepare_options import PrepareOptions
from unmask.core.io.atomic import write_json, write_text
from unmask.core.reporter import SILENT, Reporter
from unmask.data.corpus.corpus import Corpus
from unmask.data.corpus.corpus_folder import is_started, lock_corpus, start_or_resume
from unmask.data.corpus.document_stream import DropCounts, lines_of, sample_documents
from unmask.data.corpus.input_paths import expand_inputs, store_stdin
from unmask.data.corpus.manifest import Manifest
from unmask.data.corpus.prepare import PrepareProgress, check_not_empty
from unmask.data.corpus.prepare import prepare as write_shards
from unmask.data.text.drop_reasons import DropReason
from unmask.data.text.files.paths import total_bytes
from unmask.data.tokenize.extend import ExtendedTokenizer
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.train import train_tokenizer

_SHOWN = 3
_ORDINARY = {DropReason.DUPLICATE, DropReason.NEAR_DUPLICATE, DropReason.NEAR_EMPTY}
"""Reasons that need no look at the file; they are counted in the summary."""
DEFAULT_OPTIONS = PrepareOptions()


def prepare(
    files: Sequence[str | Path],
    *,
    out: Path | str,
    recipe: str = "bert",
    vocab_size: int | None = None,
    tokenizer: Path | str | None = None,
    dialogues: Sequence[str | Path] = (),
    options: PrepareOptions = DEFAULT_OPTIONS,
    processes: int = 1,
    reporter: Reporter = SILENT,
) -> Corpus:
    """Clean, segment, tokenize and shard text files; the same call resumes an interrupted preparation in `out`.

    `files` are files, folders or patterns (.txt, .jsonl, .csv, .tsv, also packed). The tokenizer is trained as the
    recipe needs it unless `tokenizer` names a tokenizer.json. `options` holds everything else.
    """
    given = replace(
        options,
        member=recipe,
        vocab_size=vocab_size or options.vocab_size,
        tokenizer=Path(tokenizer) if tokenizer is not None else options.tokenizer,
        dialogues=tuple(map(Path, dialogues)) or options.dialogues,
    )
    run_prepare([str(file) for file in (*files, *given.dialogues)], Path(out), given, processes, reporter)
    return Corpus.open(Path(out))


def run_prepare(
    files: Sequence[str], out: Path, options: PrepareOptions, processes: int = 1, reporter: Reporter = SILENT
) -> Manifest:
    """Prepare the files in `out`, unless that is done already."""
    settings = options.describe()
    named = expand_inputs(files, out)
    with lock_corpus(out):
        sources = store_stdin(named, out, reporter)
        if not is_started(out):
            check_not_empty(sources, options.collect_config)
        if start_or_resume(out, sources, settings):
            reporter.note(f"{out} is prepared already.")
            return Manifest.load(out)
        return _prepare(sources, out, options, processes, reporter)


def _prepare(sources: list[str], out: Path, options: PrepareOptions, processes: int, reporter: Reporter) -> Manifest:
    tokenizer = _tokenizer(sources, out, options, reporter)
    options.save_lists(out)
    config = options.prepare_config(sources, out, reporter)
    with reporter.progress("preparing", total_bytes(sources)) as tick:

        def report(now: PrepareProgress) -> None:
            tick(now.position, f"{now.counts.tokens / 1e6:.1f} M tokens")

        manifest, counts = write_shards(sources, out, config, tokenizer, processes, report)
    for sentence in dropped_notes(counts, out):
        reporter.note(sentence)
    return manifest


def _tokenizer(sources: list[str], out: Path, options: PrepareOptions, reporter: Reporter) -> Tokenizer:
    """The given tokenizer, the one trained before an interruption, or a new one."""
    path = out / "tokenizer.json"
    if not path.exists():
        given = options.given_tokenizer
        if isinstance(given, ExtendedTokenizer):
            write_json(out / "extended.json", {str(new): list(old) for new, old in given.old_pieces.items()})
            made = given.tokenizer
        elif given is not None:
            made = given
        else:
            title = f"training a tokenizer ({options.trainer.size:,} entries)"
            with reporter.progress(title, total_bytes(sources)) as tick:
                lines = lines_of(sample_documents(sources, options.collect_config, tick))
                made = train_tokenizer(options.trainer, lines)
        write_text(path, made.pipeline.to_str(pretty=True))
    return Tokenizer.load(path)


def dropped_notes(counts: DropCounts, out: Path) -> Iterator[str]:
    """The first documents that were dropped for each reason that a user may want to correct."""
    by_reason = attrgetter("reason")
    for reason, pieces in groupby(sorted(counts.listed, key=by_reason), by_reason):
        if reason in _ORDINARY:
            continue
        for piece in list(pieces)[:_SHOWN]:
            yield f"left out, {reason}: {piece.where}: {piece.detail}"
        if counts.dropped[reason] > _SHOWN:
            rest = f"and {counts.dropped[reason] - _SHOWN:,} more; see {out / 'dropped.jsonl'}"
            yield f"left out, {reason}: {rest}"

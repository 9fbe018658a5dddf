"""`prepare`: from any pile of text to shards that a member can be trained on.

What arrives: files and wishes. What leaves: a prepared folder, and a summary of what went in and what was left out.
What never happens here: the work itself; see `data/corpus/prepare.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from unmask.api.prepare import PrepareOptions
    from unmask.data.corpus.manifest import Manifest
    from unmask.data.tokenize.tokenizer import Tokenizer


def prepare(
    corpus: Annotated[list[str], typer.Argument(help="Files, folders, patterns, or - for standard input.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    for_: Annotated[str, typer.Option("--for", help="The member that will be trained on it.")] = "bert",
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json to use instead of training one.")] = None,
    extend: Annotated[Path | None, typer.Option(help="Words to add to that tokenizer, one a line.")] = None,
    vocabulary: Annotated[
        Literal["member", "wordpiece", "wordpiece-cased", "byte-bpe", "unigram", "characters"],
        typer.Option(help="The kind of vocabulary to train: the member's own, or another."),
    ] = "member",
    vocab_size: Annotated[int | None, typer.Option(min=1, help="Entries of a trained vocabulary.")] = None,
    sentinels: Annotated[int, typer.Option(help="Markers for removed spans, which T5's rule needs: 100.")] = 0,
    layers: Annotated[str, typer.Option(help="Further layers to find: phrase, entity, or both with a comma.")] = "",
    field: Annotated[str, typer.Option(help="The JSON field or table column that holds the text.")] = "text",
    layout: Annotated[
        Literal["blank-line", "line"], typer.Option(help=".txt: documents end at blank lines, or at every line.")
    ] = "blank-line",
    entities_field: Annotated[str, typer.Option(help="A field with given entities: [[start, end, label], ...].")] = "",
    dictionary: Annotated[list[Path] | None, typer.Option(help="Words for the segmenter, one a line.")] = None,
    terms: Annotated[list[Path] | None, typer.Option(help="Entities to match, one a line, a tab and a label.")] = None,
    phrases: Annotated[Path | None, typer.Option(help="Phrases to mark, one a line, instead of learning them.")] = None,
    dialogues: Annotated[
        list[str] | None, typer.Option(help='Conversations: .jsonl with {"turns": [...]}, or .txt, a turn a line.')
    ] = None,
    near_duplicates: Annotated[float, typer.Option(help="Leave out documents this similar, e.g. 0.8; 0: do not.")] = 0,
    shortest: Annotated[int, typer.Option(min=0, help="Leave out documents with fewer visible characters.")] = 2,
    processes: Annotated[int, typer.Option("--processes", "-j", min=0, help="Processes; 0: one for each core.")] = 0,
) -> None:
    """Clean, split, segment, tokenise and shard a corpus. Kill it at any moment: the same command goes on.

    Examples:

        unmask prepare corpus/*.jsonl.gz --for wwm --out data/

        unmask prepare news.txt --dialogues talks.jsonl --for ernie --out data/

        unmask prepare notes.txt --layout line --vocab-size 8000 --out data/

        zcat wiki.txt.gz | unmask prepare - --for roberta --out data/
    """
    import os

    from unmask.core.io.process_pool import preload_workers

    processes = processes or os.cpu_count() or 1
    preload_workers(
        "unmask.data.corpus.shard_worker", processes
    )  # the workers load while the rest of this command does

    from unmask.api.prepare import PrepareOptions
    from unmask.data.corpus.input_paths import dialogue_files

    talks = dialogue_files(dialogues or [])
    wishes = PrepareOptions(
        member=for_,
        tokenizer=tokenizer,
        extend=extend,
        vocabulary=vocabulary,
        vocab_size=vocab_size or 0,
        num_sentinels=sentinels,
        units=tuple(part.strip() for part in layers.split(",") if part.strip()),
        field=field,
        one_line=layout == "line",
        entities_field=entities_field,
        dictionaries=tuple(dictionary or ()),
        terms=tuple(terms or ()),
        phrases=phrases,
        dialogues=tuple(talks),
        near_duplicate_threshold=near_duplicates,
        min_chars=shortest,
    )
    run([*corpus, *map(str, talks)], out, wishes, processes)


def run(corpus: list[str], out: Path, options: PrepareOptions, processes: int) -> Manifest:
    """Prepare, with progress and a summary."""
    from unmask.cli.ui.console import explain_interrupt, print_line
    from unmask.cli.ui.prepare_summary import print_summary
    from unmask.data.corpus.corpus_folder import is_started, lock_corpus, start_or_resume
    from unmask.data.corpus.input_paths import expand_inputs, store_stdin
    from unmask.data.corpus.manifest import Manifest
    from unmask.data.corpus.prepare import check_not_empty

    settings = options.describe()
    named = expand_inputs(corpus, out)
    with lock_corpus(out), explain_interrupt(out):
        sources = store_stdin(named, out)
        if not is_started(out):
            check_not_empty(sources, options.collect_config)
        if start_or_resume(out, sources, settings):
            print_line(f"{out} is prepared already.", stderr=True)
            manifest = Manifest.load(out)
        else:
            manifest = _prepare(sources, out, options, processes)
    print_summary(manifest, out, 0 if options.tokenizer else options.trainer.size)
    if options.misses_dialogues:
        print_line(
            f"note: {options.member} also learns from conversations, and none were given. Prepare again with "
            f"--dialogues FILE, or train without them: unmask pretrain {options.member}:text",
            stderr=True,
        )
    return manifest


def _prepare(sources: list[str], out: Path, wishes: PrepareOptions, processes: int) -> Manifest:
    from unmask.cli.ui.prepare_summary import report_dropped
    from unmask.cli.ui.progress import progress
    from unmask.data.corpus.prepare import PrepareProgress, prepare
    from unmask.data.text.files.paths import total_bytes

    trained = _tokenizer(sources, out, wishes)
    wishes.save_lists(out)
    how = wishes.prepare_config(sources, out)
    with progress("preparing", total_bytes(sources)) as tick:

        def tell(now: PrepareProgress) -> None:
            tick(now.position, f"{now.counts.tokens / 1e6:.1f} M tokens")

        manifest, tally = prepare(sources, out, how, trained, processes, tell)
    report_dropped(tally, out)
    return manifest


def _tokenizer(sources: list[str], out: Path, wishes: PrepareOptions) -> Tokenizer:
    """The given tokenizer, the one trained before an interruption, or a new one."""
    from unmask.cli.ui.progress import progress
    from unmask.core.io.atomic import write_json, write_text
    from unmask.data.corpus.document_stream import lines_of, sample_documents
    from unmask.data.text.files.paths import total_bytes
    from unmask.data.tokenize.extend import ExtendedTokenizer
    from unmask.data.tokenize.tokenizer import Tokenizer
    from unmask.data.tokenize.trainers.train import train_tokenizer

    path = out / "tokenizer.json"
    if not path.exists():
        given = wishes.given_tokenizer
        if isinstance(given, ExtendedTokenizer):
            write_json(out / "extended.json", {str(new): list(old) for new, old in given.old_pieces.items()})
            made = given.tokenizer
        elif given is not None:
            made = given
        else:
            with progress(f"learning a vocabulary ({wishes.trainer.size:,} entries)", total_bytes(sources)) as tick:
                made = train_tokenizer(wishes.trainer, lines_of(sample_documents(sources, wishes.collect_config, tick)))
        write_text(path, made.pipeline.to_str(pretty=True))
    return Tokenizer.load(path)

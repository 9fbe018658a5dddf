"""`prepare`: from text files to the shards that a member is trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def prepare(
    corpus: Annotated[list[str], typer.Argument(help="Files, folders, patterns, or - for standard input.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    for_: Annotated[str, typer.Option("--for", help="The member that will be trained on it.")] = "bert",
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json to use instead of training one.")] = None,
    extend: Annotated[Path | None, typer.Option(help="Words to add to that tokenizer, one per line.")] = None,
    vocabulary: Annotated[
        Literal["member", "wordpiece", "wordpiece-cased", "byte-bpe", "unigram", "characters"],
        typer.Option(help="The kind of tokenizer to train: the member's own, or another."),
    ] = "member",
    vocab_size: Annotated[int | None, typer.Option(min=1, help="Entries of a trained vocabulary.")] = None,
    num_sentinels: Annotated[int, typer.Option(help="Sentinel tokens for removed spans; T5 needs 100.")] = 0,
    units: Annotated[str, typer.Option(help="Further units to find: phrase, entity, or both with a comma.")] = "",
    field: Annotated[str, typer.Option(help="The JSON field or table column that holds the text.")] = "text",
    layout: Annotated[
        Literal["blank-line", "line"], typer.Option(help=".txt: documents end at blank lines, or at every line.")
    ] = "blank-line",
    entities_field: Annotated[str, typer.Option(help="A field with given entities: [[start, end, label], ...].")] = "",
    dictionary: Annotated[list[Path] | None, typer.Option(help="Words for the segmenter, one per line.")] = None,
    terms: Annotated[
        list[Path] | None, typer.Option(help="Entities to match, one per line: a name, a tab, a label.")
    ] = None,
    phrases: Annotated[
        Path | None, typer.Option(help="Phrases to mark, one per line, instead of mining them from the text.")
    ] = None,
    dialogues: Annotated[
        list[str] | None, typer.Option(help='Dialogues: .jsonl with {"turns": [...]}, or .txt with a turn per line.')
    ] = None,
    near_duplicate_threshold: Annotated[
        float, typer.Option(help="Drop documents that are this similar, e.g. 0.8; 0: keep them.")
    ] = 0,
    min_chars: Annotated[int, typer.Option(min=0, help="Drop documents with fewer visible characters.")] = 2,
    processes: Annotated[int, typer.Option("--processes", "-j", min=0, help="Processes; 0: one per core.")] = 0,
) -> None:
    """Clean, split, segment, tokenize and shard a corpus. An interrupted preparation resumes with the same command.

    Examples:

        unmask prepare corpus/*.jsonl.gz --for wwm --out data/

        unmask prepare news.txt --dialogues talks.jsonl --for ernie --out data/

        unmask prepare notes.txt --layout line --vocab-size 8000 --out data/

        zcat wiki.txt.gz | unmask prepare - --for roberta --out data/
    """
    import os

    from unmask.core.io.process_pool import preload_workers

    processes = processes or os.cpu_count() or 1
    preload_workers("unmask.data.corpus.shard_worker", processes)  # they load while this process does

    from unmask.api.prepare import run_prepare
    from unmask.api.prepare_options import PrepareOptions
    from unmask.cli.ui.console import explain_interrupt, print_line
    from unmask.cli.ui.prepare_summary import print_summary
    from unmask.cli.ui.progress import TerminalReporter
    from unmask.data.corpus.input_paths import dialogue_files

    talks = dialogue_files(dialogues or [])
    options = PrepareOptions(
        member=for_,
        tokenizer=tokenizer,
        extend=extend,
        vocabulary=vocabulary,
        vocab_size=vocab_size or 0,
        num_sentinels=num_sentinels,
        units=tuple(part.strip() for part in units.split(",") if part.strip()),
        field=field,
        one_line=layout == "line",
        entities_field=entities_field,
        dictionaries=tuple(dictionary or ()),
        terms=tuple(terms or ()),
        phrases=phrases,
        dialogues=tuple(talks),
        near_duplicate_threshold=near_duplicate_threshold,
        min_chars=min_chars,
    )
    with explain_interrupt(out):
        manifest = run_prepare([*corpus, *map(str, talks)], out, options, processes, TerminalReporter())
    print_summary(manifest, out, 0 if tokenizer else options.trainer.size)
    if options.misses_dialogues:
        print_line(
            f"note: {for_} also trains on dialogues, and none were given. Prepare again with --dialogues FILE, or "
            f"train without them: unmask pretrain {for_}:text",
            stderr=True,
        )

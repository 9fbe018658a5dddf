"""`prepare`: from any pile of text to shards that a member can be trained on.

What arrives: files and wishes. What leaves: a prepared folder, and a summary of what went in and what was left out.
What never happens here: the work itself; see `shards/prepare.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from unmask.cli.wishes import Wishes
    from unmask.shards.manifest import Manifest
    from unmask.tokenize.tokenizer import Tokenizer


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

    from unmask.shards.engine import warm_up

    processes = processes or os.cpu_count() or 1
    warm_up("unmask.shards.writer", processes)  # the workers load while the rest of this command does

    from unmask.cli.inputs import dialogue_files
    from unmask.cli.wishes import Wishes

    talks = dialogue_files(dialogues or [])
    wishes = Wishes(
        member=for_,
        tokenizer=tokenizer,
        extend=extend,
        vocabulary=vocabulary,
        vocab_size=vocab_size or 0,
        sentinels=sentinels,
        layers=tuple(part.strip() for part in layers.split(",") if part.strip()),
        field=field,
        one_line=layout == "line",
        entities_field=entities_field,
        dictionaries=tuple(dictionary or ()),
        terms=tuple(terms or ()),
        phrases=phrases,
        dialogues=tuple(talks),
        near_duplicates=near_duplicates,
        shortest=shortest,
    )
    run([*corpus, *map(str, talks)], out, wishes, processes)


def run(corpus: list[str], out: Path, wishes: Wishes, processes: int) -> Manifest:
    """Prepare, with progress and a summary."""
    from unmask.cli.inputs import spelled_out, stored
    from unmask.cli.summary import summary
    from unmask.cli.terminal import interruptible, say
    from unmask.shards.claim import begin, begun, hold
    from unmask.shards.manifest import Manifest
    from unmask.shards.prepare import require_text

    settings = wishes.describe()
    named = spelled_out(corpus, out)
    with hold(out), interruptible(out):
        sources = stored(named, out)
        if not begun(out):
            require_text(sources, wishes.collecting)
        if begin(out, sources, settings):
            say(f"{out} is prepared already.", beside=True)
            manifest = Manifest.load(out)
        else:
            manifest = _work(sources, out, wishes, processes)
    summary(manifest, out, 0 if wishes.tokenizer else wishes.spec.size)
    if wishes.misses_dialogues:
        say(
            f"note: {wishes.member} also learns from conversations, and none were given. Prepare again with "
            f"--dialogues FILE, or train without them: unmask pretrain {wishes.member}:text",
            beside=True,
        )
    return manifest


def _work(sources: list[str], out: Path, wishes: Wishes, processes: int) -> Manifest:
    from unmask.cli.progress import progress
    from unmask.cli.summary import left_out
    from unmask.shards.prepare import Progress, prepare
    from unmask.text.sources import total_bytes

    trained = _tokenizer(sources, out, wishes)
    wishes.keep_lists(out)
    how = wishes.preparing(sources, out)
    with progress("preparing", total_bytes(sources)) as tick:

        def tell(now: Progress) -> None:
            tick(now.position, f"{now.counts.tokens / 1e6:.1f} M tokens")

        manifest, tally = prepare(sources, out, how, trained, processes, tell)
    left_out(tally, out)
    return manifest


def _tokenizer(sources: list[str], out: Path, wishes: Wishes) -> Tokenizer:
    """The given tokenizer, the one trained before an interruption, or a new one."""
    from unmask.cli.progress import progress
    from unmask.shards.files import write_json, write_text
    from unmask.shards.learn import sample, texts
    from unmask.text.sources import total_bytes
    from unmask.tokenize.extend import Extended
    from unmask.tokenize.tokenizer import Tokenizer
    from unmask.tokenize.train import train

    path = out / "tokenizer.json"
    if not path.exists():
        given = wishes.given_tokenizer
        if isinstance(given, Extended):
            write_json(out / "extended.json", {str(new): list(old) for new, old in given.pieces.items()})
            made = given.tokenizer
        elif given is not None:
            made = given
        else:
            with progress(f"learning a vocabulary ({wishes.spec.size:,} entries)", total_bytes(sources)) as tick:
                made = train(wishes.spec, texts(sample(sources, wishes.collecting, tick)))
        write_text(path, made.pipeline.to_str(pretty=True))
    return Tokenizer.load(path)

"""`similar-words`: words of a corpus that may replace one another, from trained vectors or a synonym file (MacBERT)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask.data.similar_words.config import NeighbourSource, TableConfig, VectorConfig

if TYPE_CHECKING:
    from unmask.data.corpus.corpus import Corpus
    from unmask.data.similar_words.train_vectors import WordVectors
    from unmask.data.similar_words.word_counts import WordVocabulary
    from unmask.data.tokenize.similar_word_table import SimilarWords

_NUM_PREVIEW = 10
_MANY = 1_000_000
"""With more running words than this, one thread takes minutes."""
_THREADS = 4
"""How many are advised where the machine has so many cores."""


def similar_words(
    data: Annotated[Path, typer.Option(help="A prepared folder.")],
    method: Annotated[
        NeighbourSource, typer.Option(help="none: take the synonym file alone.")
    ] = NeighbourSource.SKIP_GRAM,
    dim: Annotated[int, typer.Option(min=1, help="Numbers in a vector.")] = 100,
    epochs: Annotated[int, typer.Option(min=1, help="How often the corpus is read.")] = 5,
    window: Annotated[int, typer.Option(min=1, help="Words to either side that count as company.")] = 5,
    min_count: Annotated[int, typer.Option(min=1, help="Leave out words that come less often.")] = 5,
    neighbours: Annotated[int, typer.Option(min=1, help="Similar words to keep for each word.")] = 10,
    at_least: Annotated[float, typer.Option(min=-1, max=1, help="The lowest cosine of a learned neighbour.")] = 0.4,
    synonyms: Annotated[
        Path | None, typer.Option(help="A group of synonyms a line (.txt, .gz; Cilin): they come first.")
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", "-j", min=1, help="Threads. With more than 1 the result varies slightly.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Where the vectors start from.")] = 1,
) -> None:
    """Train word vectors on a prepared corpus and find the words that may stand in for one another (MacBERT).

    The table goes to vectors/ inside the folder. Every command that reads the folder finds it there.

    Examples:

        unmask similar-words --data data/

        unmask similar-words --data data/ --method fasttext --dim 200 --epochs 10

        unmask similar-words --data data/ --method none --synonyms cilin.txt.gz
    """
    from unmask.cli.ui.console import print_line

    training = VectorConfig(method, dim, epochs, window, seed)
    try:
        run(data, training, TableConfig(min_count, neighbours, at_least), synonyms, processes)
    except KeyboardInterrupt:
        print_line(f"\nunmask: stopped. Nothing in {data} was changed; the same command begins anew.", stderr=True)
        raise typer.Exit(130) from None


def run(
    folder: Path, vector_config: VectorConfig, table_config: TableConfig, synonyms: Path | None, threads: int
) -> None:
    """Make the table, with progress and a look at it."""
    from unmask.cli.ui.console import console
    from unmask.core.errors import InputError
    from unmask.core.io.atomic import digest_file
    from unmask.data.corpus.corpus import Corpus
    from unmask.data.similar_words.build_table import build_table
    from unmask.data.similar_words.store import save_table, vectors_lock
    from unmask.data.similar_words.synonyms import read_groups
    from unmask.data.similar_words.word_counts import count_corpus_words
    from unmask.data.tokenize.tokenizer import Tokenizer

    if vector_config.method is NeighbourSource.NONE and synonyms is None:
        raise InputError("--method none learns nothing, so it needs --synonyms FILE. Name one, or choose a method.")
    groups = read_groups(synonyms) if synonyms else ()
    corpus = Corpus.open(folder)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    with vectors_lock(folder):
        vocabulary = count_corpus_words(corpus, tokenizer, table_config.min_count)
        trained = _train(corpus, vocabulary, vector_config, threads)
        with console(stderr=True).status("looking for neighbours"):
            table = build_table(vocabulary, trained, groups, tokenizer, table_config)
        source = digest_file(synonyms) if synonyms else ""
        settings = vector_config.describe() | table_config.describe() | {"synonyms": source}
        place = save_table(folder, table, trained, corpus.manifest.tokenizer, settings)
    _report(vocabulary, table, place)


def _train(corpus: Corpus, vocabulary: WordVocabulary, how: VectorConfig, threads: int) -> WordVectors:
    import os
    import time

    from unmask.cli.ui.console import print_line
    from unmask.cli.ui.progress import progress
    from unmask.data.similar_words.train_vectors import NO_VECTORS, train_vectors

    if how.method is NeighbourSource.NONE:
        return NO_VECTORS
    more = min(_THREADS, os.cpu_count() or 1)
    if threads == 1 < more and vocabulary.num_running_words > _MANY:
        print_line(
            f"One thread trains on many words: -j {more} would be faster, with a result that varies slightly.",
            stderr=True,
        )
    with progress(f"training ({how.method})", vocabulary.num_running_words * how.epochs) as tick:
        began = time.monotonic()

        def tell(epoch: int, words: int) -> None:
            speed = words / max(time.monotonic() - began, 1e-9)
            tick(words, f"epoch {epoch}/{how.epochs}, {speed:,.0f} words/s")

        return train_vectors(corpus, vocabulary, how, threads, tell)


def _report(vocabulary: WordVocabulary, table: SimilarWords, place: Path) -> None:
    from rich.table import Table

    from unmask.cli.ui.console import console, print_line
    from unmask.data.similar_words.build_table import measure_coverage, preview

    words = Table(box=None, pad_edge=False, header_style="bold")
    words.add_column("frequent word", no_wrap=True)
    words.add_column("may be replaced by")
    for word, others in preview(vocabulary, table, _NUM_PREVIEW):
        words.add_row(word, " ".join(others) or "(nothing near enough)")
    console().print(words)
    found = measure_coverage(vocabulary, table)
    console().print(
        f"\nOf {vocabulary.num_running_words:,} running words {found.with_similar:.1%} have a similar word; "
        f"{found.without_similar:.1%} have none near enough, {found.function_words:.1%} are function words, "
        f"{found.punctuation:.1%} are punctuation and numbers, {found.rare:.1%} are too rare.\n"
        f"{len(table):,} words are in the table: {place}"
    )
    if not len(table.neighbours):
        print_line(
            "Warning: no word has a similar word, so a member that draws similar words finds none. "
            "Lower --at-least, give --synonyms FILE, or prepare more text.",
            stderr=True,
        )

"""What a user wished for when preparing, turned into parts.

What arrives: the plain values of the command line. What leaves: the settings, the spec and the annotators.
What never happens here: a default that hides in two places; the member decides what is not said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from unmask.errors import RecipeError
from unmask.examples.dialogues import Dialogues
from unmask.family import member
from unmask.records import Layer
from unmask.shards.collect import Collecting
from unmask.shards.files import disk_space, part_of, write_text
from unmask.shards.learn import sample
from unmask.shards.prepare import Preparing, shard_size
from unmask.shards.writer import annotated
from unmask.text.clean import Cleaning
from unmask.text.dedup import Resemblance
from unmask.text.dictionaries import read_terms, read_words
from unmask.text.entities import Entities, Given, NamedWords
from unmask.text.part import Annotate, FindEntities
from unmask.text.phrases import Phrases
from unmask.text.read import Reading
from unmask.text.rows import Layout
from unmask.text.segmenters import Tagger, chinese
from unmask.text.sentences import Sentences
from unmask.text.sources import total_bytes
from unmask.text.terms import Terms
from unmask.text.words import Words
from unmask.tokenize.bpe import ByteBPE
from unmask.tokenize.chars import Characters
from unmask.tokenize.extend import Extended, extend
from unmask.tokenize.spec import Spec
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tokenize.unigram import Unigram
from unmask.tokenize.wordpiece import WordPiece

_KINDS: dict[str, Spec] = {
    "wordpiece": WordPiece(),
    "wordpiece-cased": WordPiece(lowercase=False, strip_accents=False),
    "byte-bpe": ByteBPE(),
    "unigram": Unigram(),
    "characters": Characters(),
}
"""What the command line calls the kinds of vocabulary; anything else is the member's own."""


@dataclass(frozen=True)
class Wishes:
    """The wishes. What is empty was not wished for."""

    member: str = "bert"
    tokenizer: Path | None = None
    extend: Path | None = None
    vocabulary: str = "member"
    vocab_size: int = 0
    sentinels: int = 0
    layers: tuple[str, ...] = ()
    field: str = "text"
    one_line: bool = False
    entities_field: str = ""
    dictionaries: tuple[Path, ...] = ()
    terms: tuple[Path, ...] = ()
    phrases: Path | None = None
    dialogues: tuple[Path, ...] = ()
    near_duplicates: float = 0.0
    shortest: int = 2

    @cached_property
    def spec(self) -> Spec:
        """The vocabulary to train: the member's or another, of its usual size or another, perhaps with markers."""
        spec = _KINDS.get(self.vocabulary) or member(self.member).tokenizer
        return replace(  # type: ignore[type-var]
            spec, size=self.vocab_size or spec.size, sentinels=self.sentinels or spec.sentinels
        )

    @cached_property
    def given_tokenizer(self) -> Tokenizer | Extended | None:
        """The tokenizer that was given, extended if words were given too; nothing if one is to be trained."""
        if self.tokenizer is not None and (self.vocabulary in _KINDS or self.vocab_size or self.sentinels):
            raise RecipeError(
                "--vocabulary, --vocab-size and --sentinels are for training a vocabulary, but --tokenizer gives one."
            )
        if self.tokenizer is None:
            if self.extend is not None:
                raise RecipeError("--extend adds words to a tokenizer that exists: give one with --tokenizer.")
            return None
        loaded = Tokenizer.load(self.tokenizer)
        if self.extend is None:
            return loaded
        return extend(loaded, [entry.word for entry in read_words(self.extend)])

    @cached_property
    def collecting(self) -> Collecting:
        """How documents are read and which are kept."""
        layout = Layout.LINE if self.one_line else Layout.BLANK_LINE
        talks = frozenset(path.resolve() for path in self.dialogues)
        reading = Reading(field=self.field, layout=layout, entities_field=self.entities_field, dialogues=talks)
        near = (Resemblance(self.near_duplicates),) if self.near_duplicates else ()
        return Collecting(reading, Cleaning(self.shortest), near)

    @cached_property
    def wanted(self) -> frozenset[Layer]:
        """The layers to find: the member's, words and sentences always, and what was asked for or given."""
        unknown = set(self.layers) - {Layer.PHRASE, Layer.ENTITY}
        if unknown:
            raise RecipeError(
                f"--layers takes phrase and entity, found '{min(unknown)}'. Words and sentences are always found."
            )
        given = {Layer.PHRASE} if self.phrases else set()
        given |= {Layer.ENTITY} if self.terms or self.entities_field else set()
        given |= {Layer.TURN} if self.dialogues else set()
        return member(self.member).needs | {Layer.WORD, Layer.SENTENCE} | given | {Layer(name) for name in self.layers}

    @property
    def misses_dialogues(self) -> bool:
        """Whether the member learns from conversations and none were given."""
        return not self.dialogues and any(isinstance(task.examples, Dialogues) for task in member(self.member).tasks)

    @cached_property
    def segmenter(self) -> Tagger:
        """The segmenter, with the user's own words."""
        return chinese(tuple(word for path in self.dictionaries for word in read_words(path)))

    def describe(self) -> dict[str, Any]:
        """The settings that decide what comes out: what a folder that was begun must have been begun with.

        Files that were given are read here, and refused if they are not what they should be.
        """
        return {
            **self.collecting.describe(),
            "units": [annotator.describe() for annotator in self._units],
            "vocabulary": _vocabulary(self.given_tokenizer, self.spec),
            "phrases": f"given {Phrases.load(self.phrases).describe()}" if self.phrases else "learned",
            "layers": sorted(self.wanted),
        }

    def keep_lists(self, folder: Path) -> None:
        """Store the user's own words, terms and phrases beside the shards, for whoever looks at the corpus later."""
        for name, paths in (("dictionary.txt", self.dictionaries), ("terms.tsv", self.terms)):
            if paths and not (folder / name).exists():
                write_text(
                    folder / name, "".join(path.read_text(encoding="utf-8-sig").rstrip("\n") + "\n" for path in paths)
                )

    def preparing(self, sources: Sequence[str], folder: Path) -> Preparing:
        """All settings, with phrases learned if they are wanted and not there yet."""
        if Layer.PHRASE not in self.wanted:
            return self._preparing(sources, ())
        return self._preparing(sources, (self._phrases(sources, folder),))

    def _preparing(self, sources: Sequence[str], phrases: tuple[Phrases, ...]) -> Preparing:
        layers = tuple(layer for layer in Layer if layer in self.wanted)
        size = shard_size(total_bytes(sources))
        return Preparing(self.collecting, (*self._units, *phrases), layers, size)

    @cached_property
    def _units(self) -> tuple[Annotate, ...]:
        """Sentences, then entities from outside, then words (with the segmenter's names where entities are wanted)."""
        if Layer.ENTITY not in self.wanted:
            return Sentences(), Words(self.segmenter)
        finders: tuple[FindEntities, ...] = (Given(),) if self.entities_field else ()
        if self.terms:
            finders += (Terms(tuple(term for path in self.terms for term in read_terms(path))),)
        outside = (Entities(finders),) if finders else ()
        return Sentences(), *outside, NamedWords(self.segmenter)

    def _phrases(self, sources: Sequence[str], folder: Path) -> Phrases:
        path = folder / "phrases.txt"
        if self.phrases and not path.exists():
            write_text(path, self.phrases.read_text(encoding="utf-8-sig"))
        if not path.exists():
            from unmask.cli.progress import progress
            from unmask.text.collocations import learn_phrases

            with progress("learning phrases", total_bytes(sources)) as tick:
                documents = sample(sources, self.collecting, tick)
                found = learn_phrases(annotated(document, self._units) for document in documents)
            with disk_space(folder):
                part = part_of(path)
                found.save(part)
                part.replace(path)
        return Phrases.load(path)


def _vocabulary(given: Tokenizer | Extended | None, spec: Spec) -> str:
    if given is None:
        return repr(spec)
    return f"given {(given.tokenizer if isinstance(given, Extended) else given).digest}"

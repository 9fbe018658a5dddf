"""The options of `prepare`, and the settings that they resolve to: tokenizer, cleaning, annotators.

An option that is not given takes the value of the member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from unmask.core.errors import RecipeError
from unmask.core.io.atomic import disk_errors, temp_path, write_text
from unmask.core.records import UnitKind
from unmask.core.reporter import SILENT, Reporter
from unmask.data.corpus.document_stream import CollectConfig, sample_documents
from unmask.data.corpus.prepare import PrepareConfig, shard_size
from unmask.data.corpus.shard_worker import annotate
from unmask.data.input_formats.dialogues import Dialogues
from unmask.data.text.clean import Cleaner
from unmask.data.text.dedup import MinHashConfig
from unmask.data.text.files.lines import DocumentLayout
from unmask.data.text.files.paths import total_bytes
from unmask.data.text.files.read import ReadConfig
from unmask.data.text.files.word_lists import read_terms, read_words
from unmask.data.text.protocol import Annotator, EntityFinder
from unmask.data.text.units.dictionary_entities import TermMatcher
from unmask.data.text.units.entities import Entities, GivenEntities, WordsWithEntities
from unmask.data.text.units.phrases import PhraseMatcher
from unmask.data.text.units.segmenters import PosTagger, default_segmenter
from unmask.data.text.units.sentences import Sentences
from unmask.data.text.units.words import Words
from unmask.data.tokenize.extend import ExtendedTokenizer, extend_tokenizer
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import TokenizerTrainer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.members import member

_KINDS: dict[str, TokenizerTrainer] = {
    "wordpiece": WordPiece(),
    "wordpiece-cased": WordPiece(lowercase=False, strip_accents=False),
    "byte-bpe": ByteBPE(),
    "unigram": Unigram(),
    "characters": Characters(),
}
"""What the command line calls the kinds of vocabulary; anything else is the member's own."""


@dataclass(frozen=True)
class PrepareOptions:
    """What to read, how to clean it, and which tokenizer; an empty field takes the value of the member."""

    member: str = "bert"
    tokenizer: Path | None = None
    extend: Path | None = None
    vocabulary: str = "member"
    vocab_size: int = 0
    num_sentinels: int = 0
    units: tuple[str, ...] = ()
    field: str = "text"
    one_line: bool = False
    entities_field: str = ""
    dictionaries: tuple[Path, ...] = ()
    terms: tuple[Path, ...] = ()
    phrases: Path | None = None
    dialogues: tuple[Path, ...] = ()
    near_duplicate_threshold: float = 0.0
    min_chars: int = 2

    @cached_property
    def trainer(self) -> TokenizerTrainer:
        """The vocabulary to train: the member's or another, of its usual size or another, perhaps with markers."""
        spec = _KINDS.get(self.vocabulary) or member(self.member).tokenizer
        return replace(  # type: ignore[type-var]
            spec, size=self.vocab_size or spec.size, num_sentinels=self.num_sentinels or spec.num_sentinels
        )

    @cached_property
    def given_tokenizer(self) -> Tokenizer | ExtendedTokenizer | None:
        """The tokenizer that was given, extended if words were given too; nothing if one is to be trained."""
        if self.tokenizer is not None and (self.vocabulary in _KINDS or self.vocab_size or self.num_sentinels):
            raise RecipeError(
                "--vocabulary, --vocab-size and --num-sentinels are for training a vocabulary, but --tokenizer gives "
                "one."
            )
        if self.tokenizer is None:
            if self.extend is not None:
                raise RecipeError("--extend adds words to a tokenizer that exists: give one with --tokenizer.")
            return None
        loaded = Tokenizer.load(self.tokenizer)
        if self.extend is None:
            return loaded
        return extend_tokenizer(loaded, [entry.word for entry in read_words(self.extend)])

    @cached_property
    def collect_config(self) -> CollectConfig:
        """How documents are read and which are kept."""
        layout = DocumentLayout.LINE if self.one_line else DocumentLayout.BLANK_LINE
        talks = frozenset(path.resolve() for path in self.dialogues)
        reading = ReadConfig(field=self.field, layout=layout, entities_field=self.entities_field, dialogue_files=talks)
        near = (MinHashConfig(self.near_duplicate_threshold),) if self.near_duplicate_threshold else ()
        return CollectConfig(reading, Cleaner(self.min_chars), near)

    @cached_property
    def unit_kinds(self) -> frozenset[UnitKind]:
        """The units to find: the member's, words and sentences always, and those requested or given."""
        unknown = set(self.units) - {UnitKind.PHRASE, UnitKind.ENTITY}
        if unknown:
            raise RecipeError(
                f"--units takes phrase and entity, found '{min(unknown)}'. Words and sentences are always found."
            )
        given = {UnitKind.PHRASE} if self.phrases else set()
        given |= {UnitKind.ENTITY} if self.terms or self.entities_field else set()
        given |= {UnitKind.TURN} if self.dialogues else set()
        return (
            member(self.member).required_units
            | {UnitKind.WORD, UnitKind.SENTENCE}
            | given
            | {UnitKind(name) for name in self.units}
        )

    @property
    def misses_dialogues(self) -> bool:
        """Whether the member learns from conversations and none were given."""
        return not self.dialogues and any(isinstance(task.examples, Dialogues) for task in member(self.member).tasks)

    @cached_property
    def segmenter(self) -> PosTagger:
        """The segmenter, with the user's own words."""
        return default_segmenter(tuple(word for path in self.dictionaries for word in read_words(path)))

    def describe(self) -> dict[str, Any]:
        """The settings that decide what comes out: what a folder that was begun must have been begun with.

        Files that were given are read here, and refused if they are not what they should be.
        """
        return {
            **self.collect_config.describe(),
            "units": [annotator.describe() for annotator in self._annotators],
            "vocabulary": _vocabulary(self.given_tokenizer, self.trainer),
            "phrases": f"given {PhraseMatcher.load(self.phrases).describe()}" if self.phrases else "learned",
            "layers": sorted(self.unit_kinds),
        }

    def save_lists(self, folder: Path) -> None:
        """Store the user's words, terms and phrases in the corpus folder, as a record."""
        for name, paths in (("dictionary.txt", self.dictionaries), ("terms.tsv", self.terms)):
            if paths and not (folder / name).exists():
                write_text(
                    folder / name, "".join(path.read_text(encoding="utf-8-sig").rstrip("\n") + "\n" for path in paths)
                )

    def prepare_config(self, sources: Sequence[str], folder: Path, reporter: Reporter = SILENT) -> PrepareConfig:
        """All settings, with phrases learned if they are wanted and not there yet."""
        if UnitKind.PHRASE not in self.unit_kinds:
            return self._prepare_config(sources, ())
        return self._prepare_config(sources, (self._phrases(sources, folder, reporter),))

    def _prepare_config(self, sources: Sequence[str], phrases: tuple[PhraseMatcher, ...]) -> PrepareConfig:
        layers = tuple(layer for layer in UnitKind if layer in self.unit_kinds)
        size = shard_size(total_bytes(sources))
        return PrepareConfig(self.collect_config, (*self._annotators, *phrases), layers, size)

    @cached_property
    def _annotators(self) -> tuple[Annotator, ...]:
        """Sentences, then entities from outside, then words (with the segmenter's names where entities are wanted)."""
        if UnitKind.ENTITY not in self.unit_kinds:
            return Sentences(), Words(self.segmenter)
        finders: tuple[EntityFinder, ...] = (GivenEntities(),) if self.entities_field else ()
        if self.terms:
            finders += (TermMatcher(tuple(term for path in self.terms for term in read_terms(path))),)
        outside = (Entities(finders),) if finders else ()
        return Sentences(), *outside, WordsWithEntities(self.segmenter)

    def _phrases(self, sources: Sequence[str], folder: Path, reporter: Reporter) -> PhraseMatcher:
        path = folder / "phrases.txt"
        if self.phrases and not path.exists():
            write_text(path, self.phrases.read_text(encoding="utf-8-sig"))
        if not path.exists():
            from unmask.data.text.units.collocations import learn_phrases

            with reporter.progress("learning phrases", total_bytes(sources)) as tick:
                documents = sample_documents(sources, self.collect_config, tick)
                found = learn_phrases(annotate(document, self._annotators) for document in documents)
            with disk_errors(folder):
                part = temp_path(path)
                found.save(part)
                part.replace(path)
        return PhraseMatcher.load(path)


def _vocabulary(given: Tokenizer | ExtendedTokenizer | None, spec: TokenizerTrainer) -> str:
    if given is None:
        return repr(spec)
    return f"given {(given.tokenizer if isinstance(given, ExtendedTokenizer) else given).digest}"

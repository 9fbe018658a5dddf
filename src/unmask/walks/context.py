"""The vocabulary and the annotated document of a walk.

The vocabulary is that of a prepared corpus or a toy. Phrases and entities come from the corpus or are named by the
user; nothing is learned here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmask.core.errors import InputError
from unmask.core.records import CharSpans, Document, UnitKind
from unmask.data.corpus.corpus import Corpus
from unmask.data.text.dialogues import make_dialogue
from unmask.data.text.files.word_lists import TermEntry, UserWord, read_terms, read_words
from unmask.data.text.units.dictionary_entities import TermMatcher
from unmask.data.text.units.entities import Entities, WordsWithEntities, merge_spans
from unmask.data.text.units.phrases import PhraseMatcher
from unmask.data.text.units.segmenters import default_segmenter
from unmask.data.text.units.sentences import Sentences
from unmask.data.text.units.words import Words
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab
from unmask.walks.describe import pluralize
from unmask.walks.toy_vocab import CASED, ListedVocabulary, toy_tokenizer, toy_vocab


@dataclass(frozen=True, slots=True)
class CorpusUnits:
    """The segmentation resources of a corpus: user words, terms, phrases and unit kinds."""

    words: tuple[UserWord, ...] = ()
    terms: tuple[TermEntry, ...] = ()
    phrases: PhraseMatcher = PhraseMatcher(())
    unit_kinds: frozenset[UnitKind] = frozenset()

    @staticmethod
    def read(folder: Path, layers: frozenset[UnitKind]) -> CorpusUnits:
        """The resources of a prepared corpus."""
        dictionary, terms, phrases = (folder / name for name in ("dictionary.txt", "terms.tsv", "phrases.txt"))
        return CorpusUnits(
            words=read_words(dictionary) if dictionary.exists() else (),
            terms=read_terms(terms) if terms.exists() else (),
            phrases=PhraseMatcher.load(phrases) if phrases.exists() else PhraseMatcher(()),
            unit_kinds=layers,
        )

    def describe(self) -> str:
        """The resources as a list in words; empty if there are none."""
        held = ((self.words, "user word"), (self.terms, "term"), (self.phrases.phrases, "phrase"))
        return ", ".join(pluralize(len(found), what) for found, what in held if found)


NO_CORPUS_UNITS = CorpusUnits()


@dataclass(frozen=True, slots=True)
class WalkContext:
    """A tokenizer and its vocabulary with similar words, each with a line about its source."""

    tokenizer: Tokenizer
    vocab: Vocab
    vocab_source: str
    similar_words_source: str
    """The source of the similar words."""
    corpus_units: CorpusUnits = NO_CORPUS_UNITS
    segmentation_note: str = ""
    """The corpus resources that find words, phrases and entities; empty if none."""

    @staticmethod
    def toy(texts: Sequence[str], spelling: ListedVocabulary = CASED) -> WalkContext:
        """A toy vocabulary made from the texts themselves."""
        tokenizer = toy_tokenizer(texts, spelling)
        vocab = toy_vocab(tokenizer, texts)
        kind = "lower-case toy" if spelling.lowercase else "toy"
        about = f"a {kind} vocabulary of {vocab.size} entries made for this walk; --data takes a corpus's own"
        return WalkContext(tokenizer, vocab, about, "a toy table written by hand; --data takes a corpus's own")

    @staticmethod
    def corpus(folder: Path) -> WalkContext:
        """The vocabulary of a prepared corpus, with its similar words and its segmentation."""
        corpus = Corpus.open(folder)
        vocab = corpus.vocab
        similar = f"the table of {folder}, {pluralize(len(vocab.similar_words), 'word')}"
        if not len(vocab.similar_words):
            similar = f"{folder} has no table (make one with: unmask similar-words), so random tokens are used instead"
        about = f"the vocabulary of {folder}, {vocab.size:,} entries"
        own = CorpusUnits.read(folder, frozenset(corpus.manifest.layers))
        segmented = f"found as in {folder}, with its {own.describe()}" if own.describe() else ""
        return WalkContext(Tokenizer.load(folder / "tokenizer.json"), vocab, about, similar, own, segmented)


def annotate(
    text: str | Document,
    unit_kinds: frozenset[UnitKind],
    phrases: Sequence[str] = (),
    entities: Sequence[str] = (),
    corpus_units: CorpusUnits = NO_CORPUS_UNITS,
) -> Document:
    """The text with sentences and words, entities if they are needed, and the units named by the user.

    Resources of the corpus apply too; where the two overlap, the named units take precedence.
    """
    document = Sentences()(Document("the text", text) if isinstance(text, str) else text)
    finders = [TermMatcher(terms) for terms in (_terms(entities, UnitKind.ENTITY), corpus_units.terms) if terms]
    if finders:
        document = Entities(tuple(finders))(document)
    segmenter = default_segmenter(corpus_units.words)
    named = UnitKind.ENTITY in unit_kinds | corpus_units.unit_kinds
    document = WordsWithEntities(segmenter)(document) if named else Words(segmenter)(document)
    if corpus_units.phrases.phrases:
        document = corpus_units.phrases(document)
    return _with_phrases(document, phrases) if phrases else document


def as_dialogue(text: str, named: str) -> Document:
    """The text as a dialogue: every line is a turn with alternating speakers. It is not segmented yet."""
    turns = [line.strip() for line in text.splitlines() if line.strip()]
    if len(turns) < 2:
        raise InputError(
            f"A dialogue has two turns or more, each on a line of its own, but {named} has "
            f"{pluralize(len(turns), 'line')}. In most shells: {named} $'…\\n…'"
        )
    return make_dialogue("the text", turns)


def _with_phrases(document: Document, phrases: Sequence[str]) -> Document:
    """The document with phrases named by the user, which must occur in it on word borders."""
    text = document.text
    absent = [phrase for phrase in phrases if phrase not in text]
    if absent:
        raise InputError(f"The phrase '{absent[0]}' does not occur in the text. Write phrases as the text has them.")
    found = TermMatcher(_terms(phrases, UnitKind.PHRASE)).find(document)
    _check_borders(document, found)
    known = (document.char_spans[UnitKind.PHRASE],) if UnitKind.PHRASE in document.char_spans else ()
    return document.with_char_spans(UnitKind.PHRASE, merge_spans((found, *known)))


def _check_borders(document: Document, found: CharSpans) -> None:
    words, text = document.char_spans[UnitKind.WORD].spans, document.text
    whole = np.isin(found.spans.start, words.start) & np.isin(found.spans.end, words.end)
    if not whole.all():
        start, end = (int(side[~whole][0]) for side in (found.spans.start, found.spans.end))
        cut = "|".join(text[a:b] for a, b in zip(words.start.tolist(), words.end.tolist(), strict=True))
        raise InputError(f"The phrase '{text[start:end]}' cuts a word in two; the words of the text are {cut}.")


def _terms(names: Sequence[str], layer: UnitKind) -> tuple[TermEntry, ...]:
    return tuple(TermEntry(name, layer.value) for name in names)

"""What a walk stands on: a vocabulary, and the units of a text.

What arrives: a text, perhaps with phrases and entities that its writer names, and perhaps a prepared corpus.
What leaves: the tokenizer and the table of similar words to use, and the text as a `Document` with its units marked.
What never happens here: learning. Phrases are a corpus's own or named by hand; a vocabulary is a corpus's or a toy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmask.errors import InputError
from unmask.records import Document, Layer, Marks
from unmask.shards.corpus import Corpus
from unmask.text.dialogues import dialogue
from unmask.text.dictionaries import Term, UserWord, read_terms, read_words
from unmask.text.entities import Entities, NamedWords, merge
from unmask.text.phrases import Phrases
from unmask.text.segmenters import chinese
from unmask.text.sentences import Sentences
from unmask.text.terms import Terms
from unmask.text.words import Words
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tokenize.vocab import Vocab
from unmask.walk.toy import CASED, Listed, toy_tokenizer, toy_vocab
from unmask.walk.wording import count


@dataclass(frozen=True, slots=True)
class Own:
    """What a corpus was segmented with: its user's words, its terms and its phrases, and the layers that it has."""

    words: tuple[UserWord, ...] = ()
    terms: tuple[Term, ...] = ()
    phrases: Phrases = Phrases(())
    layers: frozenset[Layer] = frozenset()

    @staticmethod
    def read(folder: Path, layers: frozenset[Layer]) -> Own:
        """Those that stand beside the shards of a prepared corpus."""
        dictionary, terms, phrases = (folder / name for name in ("dictionary.txt", "terms.tsv", "phrases.txt"))
        return Own(
            words=read_words(dictionary) if dictionary.exists() else (),
            terms=read_terms(terms) if terms.exists() else (),
            phrases=Phrases.load(phrases) if phrases.exists() else Phrases(()),
            layers=layers,
        )

    def describe(self) -> str:
        """What it holds, as a list; empty if there is nothing of its own."""
        held = ((self.words, "user word"), (self.terms, "term"), (self.phrases.phrases, "phrase"))
        return ", ".join(count(len(found), what) for found, what in held if found)


NOTHING_OF_ITS_OWN = Own()


@dataclass(frozen=True, slots=True)
class Ground:
    """A tokenizer and its vocabulary with similar words, and a line that says where each is from."""

    tokenizer: Tokenizer
    vocab: Vocab
    about: str
    similar: str
    """Where the similar words are from."""
    own: Own = NOTHING_OF_ITS_OWN
    segmented: str = ""
    """What of a corpus's own was used to find words, phrases and entities; empty if nothing was."""

    @staticmethod
    def toy(texts: Sequence[str], spelling: Listed = CASED) -> Ground:
        """A toy vocabulary made of the texts themselves."""
        tokenizer = toy_tokenizer(texts, spelling)
        vocab = toy_vocab(tokenizer, texts)
        kind = "lower-case toy" if spelling.lowercase else "toy"
        about = f"a {kind} vocabulary of {vocab.size} entries made for this walk; --data takes a corpus's own"
        return Ground(tokenizer, vocab, about, "a toy table written by hand; --data takes a corpus's own")

    @staticmethod
    def corpus(folder: Path) -> Ground:
        """The vocabulary of a prepared corpus, its table of similar words, and what it was segmented with."""
        corpus = Corpus.open(folder)
        vocab = corpus.vocab
        similar = f"the table of {folder}, {count(len(vocab.stand_ins), 'word')}"
        if not len(vocab.stand_ins):
            similar = f"{folder} has no table (make one with: unmask vectors), so random tokens stand in"
        about = f"the vocabulary of {folder}, {vocab.size:,} entries"
        own = Own.read(folder, frozenset(corpus.manifest.layers))
        segmented = f"found as in {folder}, with its {own.describe()}" if own.describe() else ""
        return Ground(Tokenizer.load(folder / "tokenizer.json"), vocab, about, similar, own, segmented)


def marked(
    text: str | Document,
    layers: frozenset[Layer],
    phrases: Sequence[str] = (),
    entities: Sequence[str] = (),
    own: Own = NOTHING_OF_ITS_OWN,
) -> Document:
    """The text with its sentences and words, the names in it if entities are wanted, and what was named by hand.

    What a corpus has of its own is found as well; where the two overlap, what was named by hand counts.
    """
    document = Sentences()(Document("the text", text) if isinstance(text, str) else text)
    finders = [Terms(terms) for terms in (_terms(entities, Layer.ENTITY), own.terms) if terms]
    if finders:
        document = Entities(tuple(finders))(document)
    segmenter = chinese(own.words)
    named = Layer.ENTITY in layers | own.layers
    document = NamedWords(segmenter)(document) if named else Words(segmenter)(document)
    if own.phrases.phrases:
        document = own.phrases(document)
    return _with_phrases(document, phrases) if phrases else document


def spoken(text: str, named: str) -> Document:
    """The text as a conversation: every line is a turn, and the two sides alternate. It is not segmented yet."""
    turns = [line.strip() for line in text.splitlines() if line.strip()]
    if len(turns) < 2:
        raise InputError(
            f"A dialogue has two turns or more, each on a line of its own, but {named} has "
            f"{count(len(turns), 'line')}. In most shells: {named} $'…\\n…'"
        )
    return dialogue("the text", turns)


def _with_phrases(document: Document, phrases: Sequence[str]) -> Document:
    """The document with phrases that were named by hand, which must stand in it on word borders."""
    text = document.text
    absent = [phrase for phrase in phrases if phrase not in text]
    if absent:
        raise InputError(f"The phrase '{absent[0]}' does not stand in the text; name phrases as the text has them.")
    found = Terms(_terms(phrases, Layer.PHRASE)).find(document)
    _check_borders(document, found)
    known = (document.marks[Layer.PHRASE],) if Layer.PHRASE in document.marks else ()
    return document.with_marks(Layer.PHRASE, merge((found, *known)))


def _check_borders(document: Document, found: Marks) -> None:
    words, text = document.marks[Layer.WORD].spans, document.text
    whole = np.isin(found.spans.start, words.start) & np.isin(found.spans.end, words.end)
    if not whole.all():
        start, end = (int(side[~whole][0]) for side in (found.spans.start, found.spans.end))
        cut = "|".join(text[a:b] for a, b in zip(words.start.tolist(), words.end.tolist(), strict=True))
        raise InputError(f"The phrase '{text[start:end]}' cuts a word in two; the words of the text are {cut}.")


def _terms(names: Sequence[str], layer: Layer) -> tuple[Term, ...]:
    return tuple(Term(name, layer.value) for name in names)

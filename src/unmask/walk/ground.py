"""What a walk stands on: a vocabulary, and the units of a text.

What arrives: a text, perhaps with phrases and entities that its writer names, and perhaps a prepared corpus.
What leaves: the tokenizer and the table of similar words to use, and the text as a `Document` with its units marked.
What never happens here: learning. Phrases are those that were named, and a vocabulary is a corpus's own or a toy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmask.errors import InputError
from unmask.records import Document, Layer
from unmask.shards.corpus import Corpus
from unmask.text.dictionaries import Term
from unmask.text.entities import Entities, NamedWords
from unmask.text.sentences import Sentences
from unmask.text.terms import Terms
from unmask.text.words import Words
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tokenize.vocab import Vocab
from unmask.walk.toy import toy_tokenizer, toy_vocab


@dataclass(frozen=True, slots=True)
class Ground:
    """A tokenizer and its vocabulary with similar words, and a line that says where each is from."""

    tokenizer: Tokenizer
    vocab: Vocab
    about: str
    similar: str
    """Where the similar words are from."""

    @staticmethod
    def toy(texts: Sequence[str]) -> Ground:
        """A toy vocabulary made of the texts themselves."""
        tokenizer = toy_tokenizer(texts)
        vocab = toy_vocab(tokenizer, texts)
        about = f"a toy vocabulary of {vocab.size} entries made for this walk; --data takes a corpus's own"
        return Ground(tokenizer, vocab, about, "a toy table written by hand; --data takes a corpus's own")

    @staticmethod
    def corpus(folder: Path) -> Ground:
        """The vocabulary and the table of similar words of a prepared corpus."""
        vocab = Corpus.open(folder).vocab
        similar = f"the table of {folder}, {len(vocab.stand_ins):,} words"
        if not len(vocab.stand_ins):
            similar = f"{folder} has no table (make one with: unmask vectors), so random tokens stand in"
        about = f"the vocabulary of {folder}, {vocab.size:,} entries"
        return Ground(Tokenizer.load(folder / "tokenizer.json"), vocab, about, similar)


def marked(text: str, layers: frozenset[Layer], phrases: Sequence[str] = (), entities: Sequence[str] = ()) -> Document:
    """The text with its sentences and words, the names in it if entities are wanted, and what was named by hand."""
    document = Sentences()(Document("the text", text))
    if entities:
        document = Entities((_terms(entities, Layer.ENTITY),))(document)
    document = (NamedWords() if Layer.ENTITY in layers else Words())(document)
    if not phrases:
        return document
    absent = [phrase for phrase in phrases if phrase not in text]
    if absent:
        raise InputError(f"The phrase '{absent[0]}' does not stand in the text; name phrases as the text has them.")
    found = _terms(phrases, Layer.PHRASE).find(document)
    words = document.marks[Layer.WORD].spans
    whole = np.isin(found.spans.start, words.start) & np.isin(found.spans.end, words.end)
    if not whole.all():
        start, end = (int(side[~whole][0]) for side in (found.spans.start, found.spans.end))
        cut = "|".join(text[a:b] for a, b in zip(words.start.tolist(), words.end.tolist(), strict=True))
        raise InputError(f"The phrase '{text[start:end]}' cuts a word in two; the words of the text are {cut}.")
    return document.with_marks(Layer.PHRASE, found)


def _terms(names: Sequence[str], layer: Layer) -> Terms:
    return Terms(tuple(Term(name, layer.value) for name in names))

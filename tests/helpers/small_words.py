"""A small corpus of made-up English, prepared in memory: animals stand in one kind of company, tools in another."""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer as Pipeline
from tokenizers import decoders, models, normalizers, pre_tokenizers

from unmask.core.records import UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.tokenize.tokenizer import Tokenizer

ANIMALS = ("cat", "dog", "cow", "hen")
TOOLS = ("saw", "axe", "awl")
LONG = ("puppy", "kitten")
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", "7", "the", "eats", "sleeps", "is", "sharp", "heavy")
PIECES += (*ANIMALS, *TOOLS, "pup", "##py", "kit", "##ten", "人", "物", "士")


def make_tokenizer():
    pipeline = Pipeline(models.WordPiece({piece: number for number, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    pipeline.normalizer = normalizers.BertNormalizer()
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.decoder = decoders.WordPiece()
    return Tokenizer.parse(pipeline.to_str())


def sentences(count):
    """Animals eat and sleep, tools are sharp and heavy; the choice walks through all of them."""
    for number in range(count):
        animal, tool, young = (words[number % len(words)] for words in (ANIMALS, TOOLS, LONG))
        yield f"the {animal} eats , the {animal} sleeps 7"
        yield f"the {tool} is sharp , the {tool} is heavy 7"
        yield f"the {young} eats , the {young} sleeps"


def make_corpus(texts, tokenizer, shards=1, layers=(UnitKind.WORD, UnitKind.SENTENCE)):
    """One document, one sentence a text, words between spaces; cut into so many shards."""
    made, base = [], 0
    for part in np.array_split(np.array(list(texts), dtype=object), shards):
        ids, bits = [], []
        for text in part:
            words = [tokenizer.pipeline.encode(word, add_special_tokens=False).ids for word in text.split()]
            ids += [token for word in words for token in word]
            bits += [UnitFlag.WORD if place == 0 else 0 for word in words for place in range(len(word))]
            bits[len(bits) - sum(map(len, words))] = UnitFlag.BORDER
        made.append(Shard(np.array(ids, np.uint16), np.array(bits, np.uint8), np.array([0, len(ids)]), base))
        base += len(ids)
    manifest = Manifest(tokenizer.digest, "", layers, {}, Counts(documents=shards, tokens=base), {}, {})
    return Corpus(Path("small"), manifest, tuple(made), tokenizer.vocab)

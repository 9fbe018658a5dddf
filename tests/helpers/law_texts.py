"""Text that breaks things: strategies for many scripts, four small vocabularies, and text turned into a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from unmask.core.ragged import offsets
from unmask.core.records import Bits, Document, TokenDoc, TokenUnits, UnitFlag, UnitKind
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.text.clean import Cleaner
from unmask.data.text.units.entities import WordsWithEntities
from unmask.data.text.units.phrases import PhraseMatcher
from unmask.data.text.units.sentences import Sentences
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import TokenizerTrainer, train_tokenizer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.data.tokenize.vocab import Vocab

SENTENCES = (
    "今天下午我们去图书馆看书，张伟在北京读机器学习的论文。",
    "明天上午他们去公园看花，李娜在上海写语言模型的文章。",
    "语言模型预测下一个词，机器学习从数据里找规律！你觉得呢？",
    "The quick reader keeps reading, because machine learning needs careful readers.",
    "Don't the writers in New York write 3.5 pages a day? They rewrite them twice.",
    "The language model predicts words; prediction is what readers do, too.",
)
"""What the small vocabularies are trained on."""
_ANNOTATORS = (
    Sentences(max_chars=60),
    WordsWithEntities(),
    PhraseMatcher((("机器", "学习"), ("语言", "模型"), ("machine", "learning"), ("New", "York"))),
)
_SIMILAR = ("今天", "明天", "下午", "上午", "北京", "上海", "花", "书", "reader", "writer", "words", "pages")
_SENTINELS = 24
SPECS: dict[str, TokenizerTrainer] = {
    "wordpiece": WordPiece(size=400, min_count=1, num_sentinels=_SENTINELS),
    "byte-bpe": ByteBPE(size=400, num_sentinels=_SENTINELS),
    "unigram": Unigram(size=300, coverage=1.0, num_sentinels=_SENTINELS),
    "characters": Characters(size=400, min_count=1, num_sentinels=_SENTINELS),
}

SCRIPTS = {
    "chinese": "今天|机器学习|语言模型|张伟|北京|，|。|！”|“|𠀀|〇|々|１２％|\u3000",
    "english": "machine learning|readers|don't|U.S.|3.14|.|? |New York|naïve|ﬁ|GPT-4|\n",
    "emoji": "👩\u200d👩\u200d👧\u200d👦|👍🏽|🇨🇳|🇫|❤\ufe0f|🏴\U000e0067\U000e0062\U000e007f|\u200d|🏿|1\ufe0f\u20e3",
    "right to left": "مرحبا|السَّلامُ|؟|שלום|עֲלֵיכֶם|\u200f|\u202e|\u2067|١٢٣|־",
    "combining": "e\u0301|\u0301|q\u0323\u0307|가|\u1112\u1161\u11ab|\u3099|か\u3099|Z\u0351\u036b\u0343|İ",
    "control": "\x00|\x07|\x1b[0m|\x85|\u2028|\ufeff|\uffff|\ud800|\u200b|\u00ad|\r\n|\t",
    "markup": "[MASK]|[CLS]|<mask>|</s>|<extra_id_0>|[SEP]|##ing|▁|<unk>|[UNK]|Ġ",
}
"""Pieces of text by script, with bars between them."""
_FILLERS = st.sampled_from((" ", "", "的", "is", "。", ". ", "a"))


def texts() -> st.SearchStrategy[tuple[str, ...]]:
    """One text of each script, one of all scripts together, and one of any characters at all."""
    pools = (*SCRIPTS.values(), "|".join(SCRIPTS.values()))
    pieces = (st.lists(st.tuples(st.sampled_from(pool.split("|")), _FILLERS), max_size=20) for pool in pools)
    return st.tuples(*(piece.map(_joined) for piece in pieces), st.text(max_size=40))


def _joined(pieces: Sequence[tuple[str, str]]) -> str:
    return "".join(part for piece in pieces for part in piece)


def annotated(text: str) -> list[Document]:
    """The cleaned text with every layer of units; nothing where cleaning drops it."""
    cleaned = Cleaner()(Document("a text", text)).result
    if not isinstance(cleaned, Document):
        return []
    for annotate in _ANNOTATORS:
        cleaned = annotate(cleaned)
    return [cleaned]


@dataclass(frozen=True, slots=True)
class Ground:
    """An encoder and its vocabulary, ready to turn texts into a corpus."""

    tokenizer: Tokenizer
    encoder: Encoder
    vocab: Vocab

    @staticmethod
    def of(spec: TokenizerTrainer) -> Ground:
        """A vocabulary trained on the sentences above, with a few similar words."""
        tokenizer = train_tokenizer(spec, SENTENCES)
        encoder = Encoder(tokenizer)
        words = list(dict.fromkeys(tuple(encoder.encode_text(word).ids.tolist()) for word in _SIMILAR))
        table = SimilarWords.of(words, [range(len(words))] * len(words))
        return Ground(tokenizer, encoder, replace(tokenizer.vocab, similar_words=table))

    def corpus(self, written: Sequence[str]) -> Corpus:
        """A corpus in two shards: two plain documents, so that pairs always find a partner, and those written."""
        encoded = [self.encoder(document) for text in (*SENTENCES[2:4], *written) for document in annotated(text)]
        docs = [doc for doc in encoded if len(doc.ids)]
        middle = len(docs) // 2
        return corpus_of([docs[:middle], docs[middle:]], self.vocab)


def spoken(units: TokenUnits) -> Bits:
    """The unit bytes of a document as if it were a conversation: sentence by sentence, or the two halves of one.

    Only the bits of turns are added, so whoever does not read conversations reads what was there before.
    """
    starts = units.spans(UnitKind.SENTENCE).start
    words = units.spans(UnitKind.WORD).start
    if len(starts) == 1 and len(words) > 1:
        starts = np.append(starts, words[len(words) // 2])
    bits = units.bits.copy()
    bits[starts] |= np.uint8(UnitFlag.TURN)
    bits[starts[1::2]] |= np.uint8(UnitFlag.REPLY)
    return bits


def corpus_of(parts: Sequence[Sequence[TokenDoc]], vocab: Vocab) -> Corpus:
    """A corpus in memory, one shard for each part; every document is also a conversation."""
    shards, base = [], 0
    for docs in parts:
        borders = offsets(np.array([len(doc.ids) for doc in docs]))
        ids, bits = (np.concatenate(arrays) for arrays in zip(*((d.ids, spoken(d.units)) for d in docs), strict=True))
        shards.append(Shard(ids, bits, borders, base))
        base += len(ids)
    counts = Counts(documents=sum(map(len, parts)), tokens=base)
    return Corpus(Path("in memory"), Manifest("", "", tuple(UnitKind), {}, counts, {}, {}), tuple(shards), vocab)

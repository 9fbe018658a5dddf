"""A toy vocabulary, similar words and sample texts, to walk a sentence without a prepared corpus.

It has the characters of the text and a few hundred common ones. It is not meant for training.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tokenizers import models

from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import TokenizerTrainer, train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.data.tokenize.vocab import Vocab

_CHARACTERS = (
    "一不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家"
    "十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从使知明本水高长理"
    "实由全点力外把开手老给头等山东西南北问又应书最新问题思想春夏秋冬风花雪月雨云星光红黄蓝绿白黑马牛羊鸟鱼树草"
    "茶酒饭菜车船路桥门窗桌笔纸父母兄弟朋友笑哭走跑飞听读写唱画"
)
_WORDS = (
    "the of and to in is that it was for on are with as he be at one have this from or had by hot but some what "
    "there we can out other were all your when up use word how said an each she which do their time if will way "
    "about many then them would write like so these her long make thing see him two has look more day could go "
    "come did my sound no most number who over know water than call first people may down side been now find any "
    "new work part take get place made live where after back little only round man year came show every good me "
    "give our under name very"
)
_ENDINGS = ("ability", "ization", "ation", "tion", "able", "ment", "ness", "ing", "ity", "ed", "ly", "s")
_SIMILAR_CHINESE = (
    "使用 利用 采用 运用",
    "语言 文字 文本 言语",
    "模型 模式 模块",
    "预测 预计 推测 猜测",
    "概率 几率 机率",
    "一个 一种 这个 那个",
    "学习 研究 练习",
    "数据 资料 材料",
    "方法 办法 方式",
    "问题 难题 疑问",
    "重要 关键 主要",
    "快速 迅速 高速",
    "今天 昨天 明天",
    "天气 气候 气温",
    "喜欢 喜爱 热爱",
    "城市 都市 乡村",
    "来 去 以",
    "下 上 后",
    "词 字 句",
    "的 之",
    "很 太 最",
)
_SIMILAR_ENGLISH = (
    "big large great",
    "small little tiny",
    "good fine nice",
    "fast quick rapid",
    "model system method",
    "language text speech",
    "word term name",
    "predict guess estimate",
    "use apply employ",
    "make build create",
    "man woman person",
    "cat dog bird",
)
"""Groups of similar words, written by hand for walks."""

OTHER_CHINESE = "今天天气很好，我们去公园看花。"
OTHER_ENGLISH = "The weather is good today, so we go out to see the flowers."
DIALOGUE = "今天你想去哪里？\n我想去公园看花。\n那我们几点出发？"
OTHER_DIALOGUE_CHINESE = "你喜欢喝茶吗？\n喜欢，也喜欢喝酒。"
OTHER_DIALOGUE_ENGLISH = "Do you like the word?\nNo, I like the sound of it."
_SENTINELS = 20
_MAX_WORD_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class ListedVocabulary(WordPiece):
    """BERT's pipeline over a listed vocabulary, in which nothing of the texts is unknown."""

    @staticmethod
    def like(spec: TokenizerTrainer) -> ListedVocabulary:
        """Normalizes case and accents as another vocabulary does."""
        match spec:
            case (
                WordPiece(lowercase=lowercase, strip_accents=strip)
                | Characters(lowercase=lowercase, strip_accents=strip)
            ):
                return replace(CASED, lowercase=lowercase, strip_accents=strip)
            case _:
                return CASED

    def train(self, texts: Iterable[str], progress: bool) -> dict[str, Any]:
        """The characters or words of the texts. A long word with a usual ending becomes two pieces."""
        pipeline = self.untrained_pipeline()
        found = (pipeline.pre_tokenizer.pre_tokenize_str(pipeline.normalizer.normalize_str(text)) for text in texts)
        words = dict.fromkeys(word for pieces in found for word, _ in pieces)
        vocab = _with_ids((*self.ordered_specials, *(piece for word in words for piece in _pieces(word, words))))
        # The longest piece matches first, so another word's stem can interfere; such a word stays whole.
        model = models.WordPiece(vocab, unk_token=self.special_tokens.unk, max_input_chars_per_word=_MAX_WORD_LENGTH)
        whole = (word for word in words if model.tokenize(word)[0].value == self.special_tokens.unk)
        kind = {"type": "WordPiece", "unk_token": self.special_tokens.unk, "continuing_subword_prefix": "##"}
        return {**kind, "max_input_chars_per_word": _MAX_WORD_LENGTH, "vocab": _with_ids((*vocab, *whole))}


CASED = ListedVocabulary(lowercase=False, strip_accents=False, num_sentinels=_SENTINELS)
"""A normalizer that keeps case and accents."""


def toy_tokenizer(texts: Sequence[str], spelling: ListedVocabulary = CASED) -> Tokenizer:
    """A vocabulary of these texts, and of common characters and words of their language."""
    common = (" ".join(_CHARACTERS),) if _is_chinese(texts) else (_WORDS,)
    return train_tokenizer(spelling, [*texts, *common, *similar_words(texts)])


def toy_vocab(tokenizer: Tokenizer, texts: Sequence[str]) -> Vocab:
    """The vocabulary of a toy tokenizer with the toy table of similar words."""
    encoder = Encoder(tokenizer)
    words: list[tuple[int, ...]] = []
    neighbours: list[list[int]] = []
    for group in similar_words(texts):
        first, members = len(words), group.split()
        words += [tuple(encoder.encode_text(word).ids.tolist()) for word in members]
        neighbours += [[first + other for other in range(len(members))] for _ in members]
    return replace(tokenizer.vocab, similar_words=SimilarWords.of(words, neighbours))


def similar_words(texts: Sequence[str]) -> tuple[str, ...]:
    """The toy groups of similar words in the language of the texts."""
    return _SIMILAR_CHINESE if _is_chinese(texts) else _SIMILAR_ENGLISH


def other_toy_document(text: str) -> str:
    """A sample sentence in the language of the text, for methods that need a second document."""
    return OTHER_CHINESE if _is_chinese([text]) else OTHER_ENGLISH


def other_toy_dialogue(text: str) -> str:
    """A sample dialogue in the language of the text, one turn a line."""
    return OTHER_DIALOGUE_CHINESE if _is_chinese([text]) else OTHER_DIALOGUE_ENGLISH


def _is_chinese(texts: Sequence[str]) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for text in texts for character in text)


def _with_ids(entries: Iterable[str]) -> dict[str, int]:
    return {entry: number for number, entry in enumerate(dict.fromkeys(entries))}


def _pieces(word: str, known: Container[str]) -> tuple[str, ...]:
    """The stem and ending of a word, if it has letters and no longer prefix of it is an entry."""
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        longer = any(word[:length] in known for length in range(len(stem) + 1, len(word)))
        if word.isascii() and 4 <= len(stem) < len(word) and not longer and not word.endswith("ss"):
            return stem, f"##{ending}"
    return (word,)

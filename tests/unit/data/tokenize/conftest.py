"""Small vocabularies, trained once for all tests of this folder."""

from __future__ import annotations

import pytest

from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import TokenizerTrainer, train_tokenizer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece

CORPUS = (
    "今天天气真好，我们去公园散步。语言模型预测下一个词的概率。",
    "使用语言模型来预测下一个词，这是语言模型的任务。",
    "The quick brown fox jumps over the lazy dog; the dog doesn't mind.",
    "Naïve café owners don't predict the weather, they're masking words!",
    "2024年，GPT-4 和 BERT 都是语言模型 (language models).",
    "A literal [MASK] or <mask> is text here, and so is [CLS] </s> <pad> <unk>.",
    "שלום עולם, مرحبا بالعالم 😀👍🏽 half-masked words are unbelievable; the masked word is not.",
)

SPECS: dict[str, TokenizerTrainer] = {
    "uncased": WordPiece(400, min_count=1),
    "cased": WordPiece(400, lowercase=False, strip_accents=False, min_count=1),
    "bytes": ByteBPE(400),
    "unigram": Unigram(400, coverage=1.0),
    "characters": Characters(400, min_count=1),
    "folded characters": Characters(400, min_count=1, lowercase=True, strip_accents=True),
}


@pytest.fixture(scope="session")
def corpus() -> tuple[str, ...]:
    return CORPUS


@pytest.fixture(scope="session")
def tokenizers() -> dict[str, Tokenizer]:
    return {name: train_tokenizer(spec, iter(CORPUS)) for name, spec in SPECS.items()}


@pytest.fixture(scope="session", params=sorted(SPECS))
def tokenizer(request: pytest.FixtureRequest, tokenizers: dict[str, Tokenizer]) -> Tokenizer:
    return tokenizers[request.param]

"""Two short documents under every member and every bare rule, as text that a person can read in a review.

The vocabulary is listed by hand, so what stands in the golden files changes only when the behaviour of rows,
selections, replacements or draws does.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from law_texts import spoken

from unmask.core.codec import fingerprint
from unmask.core.ragged import offsets
from unmask.core.records import (
    Cloze,
    DecoderTarget,
    Document,
    Ids,
    InputsAndTargets,
    Ints,
    NextToken,
    PermutedTarget,
    RowClass,
    Target,
    UnitKind,
)
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.manifest import Counts, Manifest
from unmask.data.input_formats.row_plan import DynamicMasking, EpochSampler, MaskingMode, build_rows
from unmask.data.text.units.entities import WordsWithEntities
from unmask.data.text.units.phrases import PhraseMatcher
from unmask.data.text.units.sentences import Sentences
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.special_tokens import added_token_entry, sentinel_names
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.members import members
from unmask.tasks.presets import presets
from unmask.tasks.recipe import Task

HERE = Path(__file__).parent.parent / "golden"
FINGERPRINTS = HERE / "fingerprints.json"
SEED, VISITS = 1, 3

CHINESE = (
    "李娜住在北京。她每天早上读书，晚上写文章。语言模型预测下一个词的概率。机器学习需要很多数据。我们喜欢这个方法，"
    "因为它简单。你觉得怎么样？"
)
ENGLISH = (
    "Machine learning finds rules in data. A language model predicts the next word. The readers kept reading and the "
    "writer kept rewriting. It works well, because the rules are simple. What do you think?"
)
PIECES = (
    "a it in and the are do you what well because work ##s find rule data kept next word think simple machine learn "
    "##ing language model predict read ##er write ##r rewrit , . ? !"
)
SIMILAR = ("早上 晚上", "方法 数据 文章", "喜欢 觉得", "读 写", "machine language", "word rule data")
_PHRASES = PhraseMatcher((("语言", "模型"), ("机器", "学习"), ("language", "model"), ("Machine", "learning")))


@dataclass(frozen=True, slots=True)
class Subject:
    """What one golden file shows."""

    file: str
    title: str
    task: Task
    length: int
    renew: MaskingMode = DynamicMasking()


def subjects() -> Iterator[Subject]:
    """Every task of every stage of every member, then every bare rule."""
    for recipe in members():
        for number, stage in enumerate(recipe.stages, start=1):
            for task in stage.tasks:
                file = f"{recipe.name}.{number}.{task.name}.txt"
                title = f"{recipe.name}, stage {number}, task {task.name}"
                yield Subject(file, title, task, stage.max_length, recipe.masking)
    for rule in presets():
        yield Subject(f"rule.{rule.name}.txt", f"rule {rule.name}", rule.task, 128)


def fingerprints() -> dict[str, str]:
    """The name and the fingerprint of every member."""
    return {recipe.name: fingerprint(recipe) for recipe in members()}


def snapshot(subject: Subject, tokenizer: Tokenizer, corpus: Corpus) -> str:
    """The first visits of a task: what is shown, and what must be said."""
    key = Key.of(SEED, subject.task.name)
    plan = subject.task.examples.plan(corpus, subject.length, key)
    row, keys = EpochSampler(len(plan), subject.renew, key)(np.arange(VISITS))
    example = build_rows(corpus, plan, row, subject.task.examples.template, corpus.vocab)
    instance = subject.task.corruption(example, corpus.vocab, keys)
    lines = [f"{subject.title}: rows of at most {subject.length} tokens, {len(plan)} of them, seed {SEED}"]
    for visit, number in enumerate(row.tolist()):
        lines += ["", f"visit {visit}, row {number}", *_row(instance, visit, tokenizer)]
    return "\n".join(lines) + "\n"


def ground() -> tuple[Tokenizer, Corpus]:
    """The listed vocabulary, and the two documents as a corpus in memory; each is also a conversation."""
    tokenizer = _tokenizer()
    encoder = Encoder(tokenizer)
    docs = [encoder(_marked(text)) for text in (CHINESE, ENGLISH)]
    words: list[tuple[int, ...]] = []
    neighbours: list[range] = []
    for group in SIMILAR:
        first, found = len(words), group.split()
        words += [tuple(encoder.encode_text(word).ids.tolist()) for word in found]
        neighbours += [range(first, len(words))] * len(found)
    vocab = replace(tokenizer.vocab, similar_words=SimilarWords.of(words, neighbours))
    ids, bits = np.concatenate([doc.ids for doc in docs]), np.concatenate([spoken(doc.units) for doc in docs])
    assert vocab.unk not in ids
    shard = Shard(ids, bits, offsets(np.array([len(doc.ids) for doc in docs])), 0)
    manifest = Manifest("", "", tuple(UnitKind), {}, Counts(documents=2, tokens=len(ids)), {}, {})
    return tokenizer, Corpus(Path(), manifest, (shard,), vocab)


def _tokenizer() -> Tokenizer:
    spec, sentinels = WordPiece(), sentinel_names(12)
    entries = dict.fromkeys((*spec.ordered_specials, *PIECES.split(), *CHINESE, *sentinels))
    vocab = {entry: number for number, entry in enumerate(entries)}
    content = json.loads(spec.untrained_pipeline().to_str())
    content["model"]["vocab"] = vocab
    special = (*spec.ordered_specials, *sentinels)
    content["added_tokens"] = [added_token_entry(vocab[name], name, spec.special_tokens) for name in special]
    return Tokenizer.parse(json.dumps(content))


def _marked(text: str) -> Document:
    document = Document("a document", text)
    for annotate in (Sentences(), WordsWithEntities(), _PHRASES):
        document = annotate(document)
    return document


def _row(instance: InputsAndTargets, row: int, tokenizer: Tokenizer) -> Iterator[str]:
    inputs = instance.inputs
    start, end = int(inputs.rows[row]), int(inputs.rows[row + 1])
    yield _line("input", tokenizer.ids_to_tokens(inputs.ids[start:end]))
    for target in instance.targets:
        yield _line(*_asked(target, inputs.ids, row, (start, end), tokenizer))


def _asked(target: Target, shown: Ids, row: int, cut: tuple[int, int], tokenizer: Tokenizer) -> tuple[str, list[str]]:
    """The name of what is asked, and the answers: `place:shown→truth`, `place:truth`, or the text to be written."""
    start, end = cut
    match target:
        case Cloze(positions, answers):
            here = np.flatnonzero((positions >= start) & (positions < end))
            truth = tokenizer.ids_to_tokens(answers[here])
            seen = tokenizer.ids_to_tokens(shown[positions[here]])
            return "cloze", _at(positions[here] - start, [f"{a}→{b}" for a, b in zip(seen, truth, strict=True)])
        case PermutedTarget(rank, positions, answers):
            here = np.flatnonzero((positions >= start) & (positions < end))
            here = here[np.argsort(rank[positions[here]])]
            return "in order", _at(positions[here] - start, tokenizer.ids_to_tokens(answers[here]))
        case NextToken(weights):
            here = np.flatnonzero(weights[start:end])
            return "next token", _at(here, tokenizer.ids_to_tokens(shown[start + here + 1]))
        case DecoderTarget(ids, rows, _):
            return "write", tokenizer.ids_to_tokens(ids[rows[row] : rows[row + 1]])
        case RowClass(name, value):
            return name, [str(value[row])]


def _at(places: Ints, said: list[str]) -> list[str]:
    return [f"{place}:{token}" for place, token in zip(places.tolist(), said, strict=True)]


def _line(name: str, words: list[str]) -> str:
    return textwrap.fill(
        " ".join(words),
        width=100,
        initial_indent=f"  {name:<11}",
        subsequent_indent=" " * 13,
        break_long_words=False,
        break_on_hyphens=False,
    )

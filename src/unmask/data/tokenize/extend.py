"""Vocabulary extension for a domain: new entries at the end, all old ids unchanged.

Each new id comes with the old ids of its word, so that its embedding can start as their mean. WordPiece and character
models get an entry, found by longest match (also at the start of longer words). BPE gets an entry that is looked up
before merges, for whole words only. Unigram gets a piece with a score a little above the best split of the word. BPE
and Unigram learn the form after a space; Unigram finds Chinese words anywhere. A word that pre-tokenization splits (two
Chinese characters under BERT's rules, "covid-19"), and a Chinese word under BPE, becomes an added token, which is
matched before everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tokenizers import Tokenizer as Pipeline

from unmask.core.errors import InputError
from unmask.data.tokenize.special_tokens import pipeline_steps
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.train import ModelJson, add_entries

_MARGIN = 0.01
"""The margin per character by which a new Unigram piece beats the split that it replaces."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True, eq=False)
class ExtendedTokenizer:
    """An extended tokenizer, and the old ids of each new entry."""

    tokenizer: Tokenizer
    old_pieces: Mapping[int, tuple[int, ...]]


def extend_tokenizer(tokenizer: Tokenizer, words: Sequence[str]) -> ExtendedTokenizer:
    """Add words. A word that is a single token already is skipped."""
    if not all(word.strip() for word in words):
        raise InputError("extending a vocabulary needs words, but one of them is empty; remove it from the list")
    content, old = tokenizer.content(), tokenizer.pipeline
    first = _move_added_tokens_into_model(content)
    forms = {word: _pretokenized_parts(content, old, word) for word in dict.fromkeys(words)}
    whole = [parts[0] for parts in forms.values() if len(parts) == 1]
    split = [word for word, parts in forms.items() if len(parts) != 1 and old.token_to_id(word) is None]
    _add_to_model(content["model"], whole, old)
    start = add_entries(content["model"], split)
    content["added_tokens"] += [_added_word_entry(number, word) for number, word in enumerate(split, start)]
    longer = Tokenizer.parse(json.dumps(content, ensure_ascii=False), "the extended tokenizer")
    new = _vocab_entries(content["model"])[first:]
    pieces = {number: _pieces(old, name, number >= start) for number, name in enumerate(new, first)}
    return ExtendedTokenizer(longer, MappingProxyType(pieces))


def old_pieces_of_new_ids(old: Tokenizer, new: Tokenizer) -> Mapping[int, tuple[int, ...]]:
    """The old ids of each entry that `new` has in addition to `old`: the `old_pieces` of the extension.

    Empty for equal tokenizers. A tokenizer that is no extension of the old one is refused.
    """
    _check_extension(old, new)
    added = new.pipeline.get_added_tokens_decoder()
    beyond = ((n, name) for name, n in new.pipeline.get_vocab(with_added_tokens=True).items() if n >= old.vocab.size)
    return MappingProxyType({n: _pieces(old.pipeline, name, n in added) for n, name in sorted(beyond)})


def _pieces(old: Pipeline, name: str, added: bool) -> tuple[int, ...]:
    """The old ids of a new token: of the text for an added token, of the model's entry for any other."""
    if added:
        return tuple(old.encode(name, add_special_tokens=False).ids)
    return tuple(token.id for token in old.model.tokenize(name))


def _check_extension(old: Tokenizer, new: Tokenizer) -> None:
    """Refuse a tokenizer in which an old id has another meaning, or that splits text by other rules."""
    for number in sorted(old.pipeline.get_vocab(with_added_tokens=True).values()):
        meant, found = old.pipeline.id_to_token(number), new.pipeline.id_to_token(number)
        if meant != found:
            other = "is missing" if found is None else f"is {found!r}"
            raise InputError(
                f"The new tokenizer does not extend the old one: id {number} was {meant!r} and {other} now."
            )
    before, after = _split_rules(old.content()), _split_rules(new.content())
    changed = [name for name, rule in before.items() if after[name] != rule]
    if changed:
        raise InputError(
            "The new tokenizer does not extend the old one: its ids are the same, but it cuts text by other rules "
            f"({', '.join(changed)})."
        )


def _split_rules(content: dict[str, Any]) -> dict[str, Any]:
    """The settings that decide how text is split, without the vocabulary."""
    model = {name: value for name, value in content["model"].items() if name not in ("vocab", "ignore_merges")}
    return {"normalizer": content["normalizer"], "pre_tokenizer": content["pre_tokenizer"], "model": model}


def _move_added_tokens_into_model(content: dict[str, Any]) -> int:
    """Move added tokens into the model's vocabulary, so that new entries follow them; returns the next free id."""
    model = content["model"]
    known = set(_vocab_entries(model))
    outside = [token for token in content["added_tokens"] if token["content"] not in known]
    gaps = isinstance(model["vocab"], dict) and set(model["vocab"].values()) != set(range(len(known)))
    for token in sorted(outside, key=lambda token: int(token["id"])):
        gaps |= add_entries(model, [token["content"]]) != token["id"]
    if gaps:
        raise InputError("the ids of this vocabulary have gaps, so nothing can be added after them; renumber it first")
    return len(model["vocab"])


def _vocab_entries(model: ModelJson) -> list[str]:
    """The entries of a model's vocabulary by id."""
    vocab = model["vocab"]
    return sorted(vocab, key=vocab.__getitem__) if isinstance(vocab, dict) else [entry for entry, _ in vocab]


def _added_word_entry(number: int, word: str) -> dict[str, Any]:
    """The `added_tokens` entry of a word. Latin words are found in any case that the normalizer folds."""
    folded = _UNSPACED.search(word) is None
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": folded, "special": False}
    return {"id": number, "content": word, **flags}


def _pretokenized_parts(content: dict[str, Any], old: Pipeline, word: str) -> list[str]:
    """The form of a word inside a text, if pre-tokenization leaves it whole."""
    kinds = {part["type"]: part for part in pipeline_steps(content["pre_tokenizer"], "pretokenizers")}
    unspaced = _UNSPACED.search(word) is not None
    if unspaced and content["model"]["type"] == "BPE":
        return []
    text = f" {word}" if "ByteLevel" in kinds else word
    if old.normalizer is not None:
        text = old.normalizer.normalize_str(text)
    parts = [text] if old.pre_tokenizer is None else [part for part, _ in old.pre_tokenizer.pre_tokenize_str(text)]
    if "Metaspace" in kinds and unspaced and len(parts) == 1:
        return [parts[0].removeprefix(kinds["Metaspace"]["replacement"])]
    return parts


def _add_to_model(model: ModelJson, forms: Sequence[str], old: Pipeline) -> None:
    """Insert the forms into a model's vocabulary so that its algorithm finds them."""
    known = set(_vocab_entries(model))
    new = [form for form in dict.fromkeys(forms) if form not in known]
    if model["type"] == "Unigram":
        _add_unigram_pieces(model, new, old)
        return
    if model["type"] == "BPE" and new:
        model["ignore_merges"] = True
    add_entries(model, new)


def _add_unigram_pieces(model: ModelJson, forms: Sequence[str], old: Pipeline) -> None:
    scores = [score for _, score in model["vocab"]]
    scores[model["unk_id"]] = min(scores) - 10.0  # the library's score of an unknown character
    for form in forms:
        best = sum(scores[token.id] for token in old.model.tokenize(form))
        add_entries(model, [form], best + _MARGIN * len(form))

"""The tokenizer files of a Hugging Face folder: write them, and read `tokenizer.json` or `vocab.txt`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokenizers import processors

from unmask.core.errors import InputError
from unmask.core.io.atomic import read_json
from unmask.data.tokenize.special_tokens import added_token_entry
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece

_NUM_PAIR_SPECIALS = 3
"""The special tokens of BERT's template for a pair of texts."""
_FLAGS = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")


def with_template(tokenizer: Tokenizer, segments: int = 2, one_between: bool = False) -> Tokenizer:
    """The tokenizer with a template that adds `[CLS]` and `[SEP]`; unchanged if it has one.

    With one segment (RoBERTa) the second text of a pair keeps segment 0. Fine-tuning puts one token between two texts,
    so `one_between` replaces a template with two (RoBERTa).
    """
    adds = tokenizer.pipeline.num_special_tokens_to_add(is_pair=False) > 0
    between = tokenizer.pipeline.num_special_tokens_to_add(is_pair=True) > _NUM_PAIR_SPECIALS
    if adds and _last_segment(tokenizer) < segments and not (one_between and between):
        return tokenizer
    roles, vocab, second = tokenizer.special_tokens, tokenizer.vocab, min(segments - 1, 1)
    made = Tokenizer.parse(json.dumps(tokenizer.content(), ensure_ascii=False))
    template = processors.TemplateProcessing(
        single=f"{roles.cls} $A {roles.sep}",
        pair=f"{roles.cls} $A {roles.sep} $B:{second} {roles.sep}:{second}",
        special_tokens=[(roles.cls, vocab.cls), (roles.sep, vocab.sep)],
    )
    # Byte-level pieces include the space before a word; the replaced processor may have trimmed it from the offsets.
    in_bytes = "ByteLevel" in json.dumps(made.content()["pre_tokenizer"])
    before = made.pipeline.post_processor if not adds else processors.ByteLevel(trim_offsets=True) if in_bytes else None
    made.pipeline.post_processor = template if before is None else processors.Sequence([before, template])
    return made


def special_names(tokenizer: Tokenizer) -> dict[str, str]:
    """The content of `special_tokens_map.json`."""
    return {f"{role}_token": name for role, name in asdict(tokenizer.special_tokens).items() if name}


def tokenizer_config(tokenizer: Tokenizer, length: int) -> dict[str, Any]:
    """The content of `tokenizer_config.json`, for rows of at most this length.

    The tokenizer class of a model type rebuilds its pipeline from the vocabulary and these settings. It is named only
    if this gives the same pipeline. Otherwise it is `PreTrainedTokenizerFast`, which uses `tokenizer.json` as it is.
    """
    content = tokenizer.content()
    added = {str(token["id"]): {flag: token[flag] for flag in _FLAGS} for token in content["added_tokens"]}
    common = {
        **special_names(tokenizer),
        "added_tokens_decoder": added,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "model_max_length": length,
    }
    if _is_berts(content) and _last_segment(tokenizer) == 1:
        return {**common, **_as_berts(content["normalizer"])}
    if _is_robertas(content):
        return {**common, "tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": False, "trim_offsets": True}
    if _is_alberts(content):
        return {**common, **_as_alberts(content["normalizer"])}
    return {**common, "tokenizer_class": "PreTrainedTokenizerFast"}


def _last_segment(tokenizer: Tokenizer) -> int:
    """The segment of the second text of a pair; 0 if segments are not distinguished."""
    return max(tokenizer.pipeline.encode("", "").type_ids, default=0)


def _is_berts(content: Mapping[str, Any]) -> bool:
    normalizer, cut, model = content["normalizer"], content["pre_tokenizer"], content["model"]
    return (
        normalizer is not None
        and (normalizer["type"], normalizer.get("clean_text")) == ("BertNormalizer", True)
        and cut == {"type": "BertPreTokenizer"}
        and (model["type"], model.get("continuing_subword_prefix")) == ("WordPiece", "##")
        and model.get("max_input_chars_per_word") == 100
    )


def _as_berts(rules: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "tokenizer_class": "BertTokenizerFast",
        "do_lower_case": rules["lowercase"],
        "strip_accents": rules["strip_accents"],
        "tokenize_chinese_chars": rules["handle_chinese_chars"],
    }


def _is_robertas(content: Mapping[str, Any]) -> bool:
    cut, around, model = content["pre_tokenizer"], content["post_processor"], content["model"]
    return (
        content["normalizer"] is None
        and cut == {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        and around is not None
        and around["type"] == "RobertaProcessing"
        and (around["trim_offsets"], around["add_prefix_space"]) == (True, False)
        and model["type"] == "BPE"
        and not (model.get("byte_fallback") or model.get("ignore_merges"))
    )


def _is_alberts(content: Mapping[str, Any]) -> bool:
    """Whether the normalizer is ALBERT's: plain quotes, then accents and case as in the settings, and nothing else."""
    rules, cut, model = content["normalizer"], content["pre_tokenizer"], content["model"]
    kinds = [rule["type"] for rule in rules["normalizers"]] if rules and rules["type"] == "Sequence" else []
    cuts = [one["type"] for one in cut["pretokenizers"]] if cut and cut["type"] == "Sequence" else []
    known = [[*accents, *case] for accents in ([], ["NFKD", "StripAccents"]) for case in ([], ["Lowercase"])]
    return (
        kinds[:2] == ["Replace", "Replace"]
        and kinds[2:] in known
        and cuts == ["WhitespaceSplit", "Metaspace"]
        and (model["type"], model.get("unk_id")) == ("Unigram", 1)
    )


def _as_alberts(rules: Mapping[str, Any]) -> dict[str, Any]:
    kinds = [rule["type"] for rule in rules["normalizers"]]
    return {
        "tokenizer_class": "AlbertTokenizerFast",
        "do_lower_case": "Lowercase" in kinds,
        "keep_accents": "StripAccents" not in kinds,
    }


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder: its `tokenizer.json`, or BERT's pipeline with its `vocab.txt`."""
    if (folder / "tokenizer.json").is_file():
        return Tokenizer.load(folder / "tokenizer.json")
    if (folder / "vocab.txt").is_file():
        return _from_list(folder)
    raise InputError(f"{folder} has neither tokenizer.json nor vocab.txt; put the tokenizer of the network there.")


def _from_list(folder: Path) -> Tokenizer:
    """BERT's original format, one entry per line; lower-cased unless `tokenizer_config.json` disables it."""
    path = folder / "vocab.txt"
    try:
        entries = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read as a vocabulary ({error}). Take the folder from its source again."
        ) from error
    settings = folder / "tokenizer_config.json"
    given = read_settings(settings) if settings.is_file() else {}
    lowercase = bool(given.get("do_lower_case", True))
    accents = given.get("strip_accents")
    spec = WordPiece(lowercase=lowercase, strip_accents=lowercase if accents is None else bool(accents))
    return _build_tokenizer(spec, [entry.rstrip("\r") for entry in entries], path)


def _build_tokenizer(spec: WordPiece, entries: list[str], path: Path) -> Tokenizer:
    vocab = {entry: number for number, entry in enumerate(entries)}
    missing = [name for name in spec.special_tokens if name not in vocab]
    if missing:
        raise InputError(f"The vocabulary {path} has no {', '.join(missing)}; use the vocabulary of a BERT.")
    content = json.loads(spec.untrained_pipeline().to_str())
    content["model"]["vocab"] = vocab
    content["added_tokens"] = [
        added_token_entry(n, name, spec.special_tokens) for name, n in vocab.items() if name in {*spec.special_tokens}
    ]
    content["post_processor"] = None
    return with_template(Tokenizer.parse(json.dumps(content, ensure_ascii=False), str(path)))


def read_settings(path: Path) -> dict[str, Any]:
    """A JSON object of a file from another program."""
    return read_json(path, "Take the folder from its source again.", InputError)

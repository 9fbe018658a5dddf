"""Descriptions of corruptions, budgets and attention in words, and readable tokens.

Every number is read from the part itself, so that a description cannot differ from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isclose
from typing import TypeAlias

from tokenizers import decoders

from unmask.config.attention_pattern import CAUSAL, FULL, AttentionPattern, Causal, FactorizationOrder, Full
from unmask.core.records import Ids, RowBatch, UnitKind
from unmask.data.corrupt.compose import NoiseSequence
from unmask.data.corrupt.document_rotation import DocumentRotation
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.corrupt.masking import MaskTokens, OneOfSelectors, RandomTokens, Replace, WholeUnits, mask_budgets
from unmask.data.corrupt.mass_fragment import MassFragment
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion
from unmask.data.input_formats.row_plan import MaskingMode, StaticMasking
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.tasks.recipe import Task

SEGMENT_LETTERS = "ABQR"
"""The letters of segments: A and B of a pair, Q (query) and R (reply) of a dialogue."""


def describe_selection(part: object) -> str:
    """The tokens that a corruption selects."""
    match part:
        case MaskTokens(select, _):
            return describe_selection(select)
        case RandomTokens(rate):
            return f"single tokens, {percent_text(rate)} of the row"
        case WholeUnits(layer, run, rate):
            return f"{_unit_runs(layer, run)}, {percent_text(rate)} of the row's tokens"
        case OneOfSelectors(selections, shares):
            choices = (
                f"{percent_text(share)} {describe_selection(part)}"
                for part, share in zip(selections, shares, strict=True)
            )
            return "one of these for each row: " + "; ".join(choices)
        case SpanCorruption(rate, mean):
            return f"{percent_text(rate)} of the tokens, in spans of {mean:g} on average"
        case MassFragment(share):
            return f"one piece of {percent_text(share)} of the tokens"
        case PermutationOrder(share, longest):
            return f"{_fraction_text(share)} of the tokens, in spans of 1 to {longest}"
        case TextInfilling(rate, mean, layer):
            return f"{percent_text(rate)} of the {layer}s, in spans of Poisson({mean:g}) {layer}s, which may be empty"
        case TokenDeletion(rate):
            return f"single tokens, {percent_text(rate)} of the text"
        case PermuteSentences():
            return "all sentences, put into a random order"
        case DocumentRotation():
            return "one token, at which the rotated text begins"
        case NoiseSequence(steps):
            return "; then ".join(describe_selection(step) for step in steps)
        case NoCorruption():
            return "nothing"
        case _:
            return _first_line(part)


def describe_replacement(part: object) -> str:
    """The tokens that the network gets in their place."""
    match part:
        case MaskTokens(_, replace):
            return describe_replacement(replace)
        case Replace(mask, random, keep, similar, per):
            return f"{_replacement_fractions(mask, random, keep, similar)}; drawn for each {per}"
        case SpanCorruption():
            return "each span becomes one sentinel, numbered from left to right"
        case MassFragment(_, _, mask, random, keep):
            return f"{_replacement_fractions(mask, random, keep, 0.0)}; drawn for each token"
        case TextInfilling():
            return "each span, however long, becomes one mask"
        case TokenDeletion():
            return "deleted tokens leave no trace"
        case NoiseSequence(steps):
            return "; then ".join(describe_replacement(step) for step in steps)
        case PermuteSentences():
            return "all sentences, in the new order"
        case DocumentRotation():
            return "the text is split there and its two parts are swapped"
        case PermutationOrder() | NoCorruption():
            return "the text unchanged; the attention mask hides the targets"
        case _:
            return _first_line(part)


def describe_budget(part: object, example: RowBatch) -> str:
    """The number of tokens of a row that may be selected, with the arithmetic."""
    length, text = len(example.ids), int((~example.protected).sum())
    match part:
        case MaskTokens(WholeUnits(_, run, rate), _) if len(run) > 1:
            return f"about {rate:g} × {pluralize(length, 'token')} = {rate * length:.1f}; the last run stays whole"
        case MaskTokens(select, _):
            most = int(mask_budgets(example.lengths, select.rate)[0])
            return f"{select.rate:g} × {pluralize(length, 'token')} = {select.rate * length:.1f}, so at most {most}"
        case SpanCorruption(rate) | TokenDeletion(rate) | MassFragment(rate) | PermutationOrder(rate):
            return f"{_fraction_text(rate)} × {pluralize(text, 'text token')} = {rate * text:.1f}, rounded"
        case TextInfilling(rate, _, layer):
            return f"{rate:g} × the number of {layer}s, rounded up"
        case NoiseSequence(steps):
            return "; then ".join(filter(None, (describe_budget(step, example) for step in steps)))
        case _:
            return ""


def describe_attention(attention: AttentionPattern, has_decoder: bool) -> str:
    """The attention pattern in a sentence."""
    if has_decoder:
        return "encoder: bidirectional; decoder: causal, with cross-attention to the encoder's states"
    if attention == FULL:
        return "bidirectional: every position attends to all positions"
    if attention == CAUSAL:
        return "causal: a position attends to itself and the positions before it"
    parts = []
    for stream in attention.streams:
        match stream.rule:
            case FactorizationOrder(strict):
                what = "those drawn before it, not to itself" if strict else "itself and those drawn before it"
            case Full():
                what = "all positions"
            case Causal():
                what = "itself and the positions before it"
            case other:
                what = _first_line(other)
        parts.append(f"{stream.name}: a position attends to {what}")
    return "; ".join(parts)


def describe_masking(masking: MaskingMode, visit: int) -> str:
    """What a visit of a row shows, under static or dynamic masking."""
    if isinstance(masking, StaticMasking):
        copy = f"copy {visit % masking.num_copies} of {masking.num_copies}"
        return f"visit {visit}: {copy} frozen ones (static masking 静态)"
    return f"visit {visit}: drawn anew at every visit (dynamic masking 动态)"


def percent_text(share: float) -> str:
    """A fraction as a percentage, without trailing digits."""
    return f"{100 * share:.3g} %"


def pluralize(number: int, what: str) -> str:
    """A number with its noun, in the plural for all numbers but one."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _replacement_fractions(mask: float, random: float, keep: float, similar: float) -> str:
    named = ((mask, "masked"), (similar, "a similar word"), (random, "random"), (keep, "kept as it is"))
    return ", ".join(f"{percent_text(share)} {name}" for share, name in named if share)


def _fraction_text(share: float) -> str:
    whole = round(1 / share)
    return f"1/{whole}" if isclose(share * whole, 1) and whole not in (2, 4, 5, 10) else f"{share:g}"


def _unit_runs(layer: UnitKind, run: tuple[float, ...]) -> str:
    names = {UnitKind.WORD: "words", UnitKind.PHRASE: "phrases", UnitKind.ENTITY: "entities"}
    if len(run) == 1:
        filled = "" if layer is UnitKind.WORD else " first, then words"
        return f"whole {names[layer]}{filled}"
    law = " / ".join(f"{100 * share:.0f}" for share in run[:4]) + (" / …" if len(run) > 4 else "")
    mean = sum(share * length for length, share in enumerate(run, start=1))
    return f"runs of 1 to {len(run)} {names[layer]} ({law} %, mean {mean:.1f})"


def _first_line(part: object) -> str:
    """The first line of a part's docstring, for parts of users."""
    return (inspect.getdoc(part) or type(part).__name__).split("\n")[0].rstrip(".")


Names: TypeAlias = Callable[[Sequence[int] | Ids], list[str]]
"""Returns the readable token of each id."""

_PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
"""The bytes that byte-level vocabularies write as the character of that number; all others follow after 255."""
_LONE = 0xDC00
"""The first surrogate of Python's decoder for bytes that are not UTF-8."""
_CONTROLS = (*range(0x20), 0x7F)


def token_texts(tokenizer: Tokenizer) -> Names:
    """The readable tokens of a tokenizer, one for each id.

    A byte that is only a part of a character is shown as <E4>, and so are blank tokens.
    """
    if not isinstance(tokenizer.pipeline.decoder, decoders.ByteLevel):
        return tokenizer.ids_to_tokens
    entries = {number: piece for piece, number in tokenizer.pipeline.get_vocab(with_added_tokens=True).items()}
    bytes_of = {letter: byte for byte, letter in _letters().items()}
    shown = {number: _hex(number) for number in _CONTROLS} | {_LONE + byte: _hex(byte) for byte in range(0x80, 0x100)}

    def names(ids: Sequence[int] | Ids) -> list[str]:
        texts = (_text(entries[int(number)], bytes_of) for number in ids)
        return [_hex(*text.encode()) if text.isspace() else text.translate(shown) for text in texts]

    return names


def _text(piece: str, bytes_of: dict[str, int]) -> str:
    """The text of an entry. Added tokens are not spelled in bytes and are returned unchanged."""
    if not all(letter in bytes_of for letter in piece):
        return piece
    return bytes(bytes_of[letter] for letter in piece).decode("utf-8", "surrogateescape")


def _hex(*numbers: int) -> str:
    return "".join(f"<{number:02X}>" for number in numbers)


def _letters() -> dict[int, str]:
    """The character for each byte in GPT-2's vocabulary."""
    others = (byte for byte in range(0x100) if byte not in _PRINTED)
    return {byte: chr(byte) for byte in _PRINTED} | {byte: chr(0x100 + at) for at, byte in enumerate(others)}


RAISED_RATE = 0.4
"""The raised rate."""
_ENOUGH_BUDGET = 10.0
"""A budget that fits most runs."""


def with_raised_rate(task: Task, example: RowBatch) -> tuple[Task, str]:
    """The task with a raised rate and a note about it; the same task and no note if the row is long enough."""
    length = len(example.ids)
    match task.corruption:
        case MaskTokens(WholeUnits(_, _, rate) as select, _) if rate * length < min(
            _needed_budget(select, example), RAISED_RATE * length
        ):
            wider = replace(task.corruption, select=replace(select, rate=RAISED_RATE))
            return replace(task, corruption=wider), _raised_rate_note(rate, length)
        case SpanCorruption(rate, mean) as part if rate * length < min(2 * mean, RAISED_RATE * length):
            return replace(task, corruption=replace(part, rate=RAISED_RATE)), _raised_rate_note(rate, length)
    return task, ""


def _needed_budget(select: WholeUnits, example: RowBatch) -> float:
    """The budget that fits runs, or the longest phrase or entity of the row."""
    if len(select.run_lengths) > 1:
        return _ENOUGH_BUDGET
    return 0.0 if select.layer is UnitKind.WORD else float(example.units.spans(select.layer).lengths.max(initial=0))


def _raised_rate_note(rate: float, length: int) -> str:
    return (
        f"the rule's own rate is {percent_text(rate)}, only {rate * length:.1f} of these {length} tokens, too few to "
        f"show it; here {percent_text(RAISED_RATE)} are chosen (--exact keeps {percent_text(rate)})"
    )

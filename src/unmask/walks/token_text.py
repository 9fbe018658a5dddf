"""Tokens in readable form: one piece of text for each id, whatever the vocabulary is made of.

What arrives: a tokenizer and ids. What leaves: their tokens as they can be printed on one line.
What never happens here: a replacement character. A byte that is only part of a character is shown as itself: <E4>.
Blank tokens are shown so too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tokenizers import decoders

from unmask.core.records import Ids
from unmask.data.tokenize.tokenizer import Tokenizer

Names: TypeAlias = Callable[[Sequence[int] | Ids], list[str]]
"""Gives the readable token for each id."""

_PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
"""The bytes that byte-level vocabularies write as the character of that number; all others follow after 255."""
_LONE = 0xDC00
"""Where Python's decoder puts a byte that is no text: at the surrogate of that number."""
_CONTROLS = (*range(0x20), 0x7F)


def token_texts(tokenizer: Tokenizer) -> Names:
    """How a tokenizer's ids are written in a walk."""
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
    """An entry as text. Words that were added later are not spelled in bytes, and stay as they are."""
    if not all(letter in bytes_of for letter in piece):
        return piece
    return bytes(bytes_of[letter] for letter in piece).decode("utf-8", "surrogateescape")


def _hex(*numbers: int) -> str:
    return "".join(f"<{number:02X}>" for number in numbers)


def _letters() -> dict[int, str]:
    """The letter with which GPT-2's vocabulary writes each byte."""
    others = (byte for byte in range(0x100) if byte not in _PRINTED)
    return {byte: chr(byte) for byte in _PRINTED} | {byte: chr(0x100 + at) for at, byte in enumerate(others)}

"""Fills holes: for each mask of a text the likeliest tokens, with their probabilities.

What arrives: a network with a head for tokens, its tokenizer, texts with masks. What leaves: guesses, likeliest first.
What never happens here: a cut. A text that is too long for the network is refused, for its mask may stand anywhere.

Shapes: M masks of a batch, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from unmask.errors import InputError
from unmask.nets.heads import TokenHead
from unmask.nets.model import Model
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.guesses import Guess, likeliest
from unmask.use.rows import device_of, flat, framed

MASK = "[MASK]"
"""Stands for the mask in every text, whatever the tokenizer calls its own."""
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Filled:
    """A text, and for each of its masks the likeliest tokens."""

    text: str
    masks: tuple[tuple[Guess, ...], ...]


def fill(model: Model, tokenizer: Tokenizer, texts: Sequence[str], top: int = 5) -> Iterator[Filled]:
    """Fill the masks of each text, all of them at once: one guess does not know of the other."""
    head = _head(model)
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        rows = [_row(model, tokenizer, text) for text in batch]
        guesses = likeliest(_probabilities_MV(model, head, rows, tokenizer.vocab.mask), tokenizer, top)
        for text, row in zip(batch, rows, strict=True):
            yield Filled(text, tuple(islice(guesses, row.count(tokenizer.vocab.mask))))


def who_fills(model: Model, generator: Model | None) -> Model:
    """The network that fills masks: itself, or the generator beside it where it says no tokens."""
    return generator if model.tokens is None and generator is not None else model


def _head(model: Model) -> TokenHead:
    if model.tokens is None:
        raise InputError(
            "This network has no head that says tokens, so it cannot fill a mask. Take one that was exported for "
            "pretraining, as a masked language model or as a generator, or a run that learned to fill masks."
        )
    return model.tokens


def _row(model: Model, tokenizer: Tokenizer, text: str) -> list[int]:
    """The row of a text, which must have a mask and fit the network."""
    shown = text if len(text) <= 40 else f"{text[:39]}…"
    written = text.replace(MASK, tokenizer.roles.mask)
    vocab = tokenizer.vocab
    row = framed(vocab, tokenizer.pipeline.encode(written, add_special_tokens=False).ids)
    if vocab.mask not in row:
        raise InputError(f"There is nothing to fill in '{shown}'. Write {MASK} where a token is missing.")
    if model.positions and len(row) > model.positions:
        raise InputError(
            f"'{shown}' has {len(row)} tokens with {tokenizer.roles.cls} and {tokenizer.roles.sep}, but this network "
            f"reads {model.positions} at most. Shorten the text around its mask."
        )
    return row


def _probabilities_MV(model: Model, head: TokenHead, rows: Sequence[Sequence[int]], mask: int) -> Tensor:
    """The probability of every token at every mask, in the order of the rows."""
    tokens = flat(rows, device_of(model))
    with torch.inference_mode():
        states = model.eval().trunk(tokens)
        logits_MV: Tensor = head(states.last_TD[tokens.ids_T == mask])
        return logits_MV.float().softmax(-1).cpu()

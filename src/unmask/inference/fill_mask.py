"""Fill masks: the most probable tokens for each [MASK] of a text, with probabilities.

A text that is too long is refused, not truncated, because its mask may be anywhere.

Shapes: M masks of a batch, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.inference.pack_texts import device_of, pack, with_special_tokens
from unmask.nets.layers.heads import LMHead
from unmask.nets.model import EncoderWithHeads
from unmask.nets.top_k import TokenProbability, most_probable

MASK = "[MASK]"
"""The mask in input texts, whatever the mask token of the tokenizer."""
_BATCH = 32


@dataclass(frozen=True, slots=True)
class FilledText:
    """A text, and the most probable tokens for each of its masks."""

    text: str
    candidates: tuple[tuple[TokenProbability, ...], ...]


def fill_masks(
    model: EncoderWithHeads, tokenizer: Tokenizer, texts: Sequence[str], top_k: int = 5
) -> Iterator[FilledText]:
    """Fill the masks of each text, independently of each other."""
    head = _require_lm_head(model)
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        rows = [_row(model, tokenizer, text) for text in batch]
        guesses = most_probable(_probabilities_MV(model, head, rows, tokenizer.vocab.mask), tokenizer, top_k)
        for text, row in zip(batch, rows, strict=True):
            yield FilledText(text, tuple(islice(guesses, row.count(tokenizer.vocab.mask))))


def mask_filler(model: EncoderWithHeads, generator: EncoderWithHeads | None) -> EncoderWithHeads:
    """The model with an LM head: the model itself, or the generator of ELECTRA."""
    return generator if model.lm_head is None and generator is not None else model


def _require_lm_head(model: EncoderWithHeads) -> LMHead:
    if model.lm_head is None:
        raise InputError(
            "This model has no LM head, so it cannot fill masks. Use one that was exported for pretraining, as a "
            "masked language model or as a generator, or a run with a masked-LM objective."
        )
    return model.lm_head


def _row(model: EncoderWithHeads, tokenizer: Tokenizer, text: str) -> list[int]:
    """The row of a text, which must have a mask and fit into the model."""
    shown = text if len(text) <= 40 else f"{text[:39]}…"
    written = text.replace(MASK, tokenizer.special_tokens.mask)
    vocab = tokenizer.vocab
    row = with_special_tokens(vocab, tokenizer.pipeline.encode(written, add_special_tokens=False).ids)
    if vocab.mask not in row:
        raise InputError(f"There is nothing to fill in '{shown}'. Write {MASK} where a token is missing.")
    if model.max_positions and len(row) > model.max_positions:
        raise InputError(
            f"'{shown}' has {len(row)} tokens with {tokenizer.special_tokens.cls} and "
            f"{tokenizer.special_tokens.sep}, but this network "
            f"reads {model.max_positions} at most. Shorten the text around its mask."
        )
    return row


def _probabilities_MV(model: EncoderWithHeads, head: LMHead, rows: Sequence[Sequence[int]], mask: int) -> Tensor:
    """The probability of every token at every mask, in the order of the rows."""
    tokens = pack(rows, device_of(model))
    with torch.inference_mode():
        states = model.eval().network(tokens)
        logits_MV: Tensor = head(states.last_TD[tokens.ids_T == mask])
        return logits_MV.float().softmax(-1).cpu()

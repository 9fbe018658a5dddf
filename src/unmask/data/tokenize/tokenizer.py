"""A tokenizer: the pipeline of a `tokenizer.json` with the roles of its special tokens.

`encoder.py` encodes documents; `extend.py` adds words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Pipeline
from tokenizers import decoders

from unmask.core.errors import InputError
from unmask.core.records import Ids
from unmask.data.tokenize.special_tokens import SENTINEL, UNUSED, SpecialTokens, find_special_tokens
from unmask.data.tokenize.vocab import Vocab


@dataclass(frozen=True, slots=True, eq=False)
class Tokenizer:
    """A `tokenizers` pipeline and its special tokens. Treat the pipeline as read-only."""

    pipeline: Pipeline = field(repr=False)
    special_tokens: SpecialTokens

    @staticmethod
    def load(path: Path) -> Tokenizer:
        """Read a `tokenizer.json`."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise InputError(f"cannot read the tokenizer; there is no such file: {path}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the tokenizer {path}: {error}; give the path of a tokenizer.json") from error
        return Tokenizer.parse(text, str(path))

    @staticmethod
    def parse(text: str, where: str = "the given text") -> Tokenizer:
        """Parse the content of a `tokenizer.json`; `where` names it in errors."""
        try:
            pipeline = Pipeline.from_str(text)
        except Exception as error:  # the library raises bare Exception
            raise InputError(f"{where} is not a tokenizer.json that can be used: {error}") from error
        pipeline.no_padding()
        pipeline.no_truncation()
        try:
            roles = find_special_tokens(json.loads(text), pipeline.get_vocab(with_added_tokens=True))
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        return Tokenizer(pipeline, roles)

    def save(self, path: Path) -> None:
        """Write a `tokenizer.json`; equal tokenizers give equal bytes."""
        Path(path).write_text(self.pipeline.to_str(pretty=True), encoding="utf-8")

    def content(self) -> dict[str, Any]:
        """The content of the `tokenizer.json` as a new object."""
        content: dict[str, Any] = json.loads(self.pipeline.to_str())
        return content

    @property
    def digest(self) -> str:
        """A digest of everything that decides ids and text."""
        canonical = json.dumps(self.content(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()

    @property
    def vocab(self) -> Vocab:
        """The ids by role. Added words count as text; special tokens, sentinels and [unusedN] do not."""
        names = self.pipeline.get_vocab(with_added_tokens=True)
        markers = ((SENTINEL.fullmatch(name), number) for name, number in names.items())
        sentinels = [number for _, number in sorted((int(match[1]), number) for match, number in markers if match)]
        special = {number for number, token in self.pipeline.get_added_tokens_decoder().items() if token.special}
        special.update(names[name] for name in self.special_tokens)
        special.update(sentinels)
        special.update(number for name, number in names.items() if UNUSED.fullmatch(name))
        return Vocab(
            size=max(names.values()) + 1,
            cls=names[self.special_tokens.cls],
            sep=names[self.special_tokens.sep],
            mask=names[self.special_tokens.mask],
            pad=names[self.special_tokens.pad],
            unk=names[self.special_tokens.unk],
            ordinary=np.array(sorted(set(names.values()) - special), dtype=np.int32),
            sentinels=np.array(sentinels, dtype=np.int32),
            own_bos=names.get(self.special_tokens.bos),
            own_eos=names.get(self.special_tokens.eos),
        )

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The text of ids, with special tokens."""
        text: str = self.pipeline.decode([int(number) for number in ids], skip_special_tokens=False)
        return text

    def ids_to_tokens(self, ids: Sequence[int] | Ids) -> list[str]:
        """The readable piece of each id. Bytes are decoded; an incomplete character is \ufffd."""
        pieces = [self._piece(int(number)) for number in ids]
        decoder = self.pipeline.decoder
        return [decoder.decode([piece]) for piece in pieces] if isinstance(decoder, decoders.ByteLevel) else pieces

    def _piece(self, number: int) -> str:
        piece: str | None = self.pipeline.id_to_token(number)
        if piece is None:
            raise InputError(f"id {number} is not in this vocabulary; use the tokenizer that the ids came from")
        return piece

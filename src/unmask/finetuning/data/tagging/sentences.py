"""Tagged sentences, and the token-classification objective that predicts a tag at the first piece of each word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar
from unicodedata import east_asian_width

from unmask.core.records import BatchTarget, InputsAndTargets, Target, TokenLabels
from unmask.finetuning.data.dataset import Texts
from unmask.finetuning.data.tagging.schemes import TagScheme, allowed_transitions
from unmask.objectives.protocol import Objective

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.backbone import Backbone
    from unmask.nets.batch.batch import Batch


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """The words of a sentence and their tags; no tags if unknown."""

    words: Texts
    truth: Texts = ()
    begin: tuple[int, ...] = ()
    """The offset of each word in its running text, in characters; empty if the file holds words only."""

    @property
    def texts(self) -> Texts:
        """The words."""
        return self.words

    def to_json(self) -> dict[str, object]:
        """The words, their tags if known, and their offsets if they come from a text."""
        known = {"tags": self.truth, "begin": self.begin}
        return {"words": self.words, **{name: value for name, value in known.items() if value}}

    @property
    def has_space_before(self) -> tuple[bool, ...]:
        """Whether a space precedes each word: as in the text, or as usual in its script."""
        if self.begin:
            ends = (0, *(place + len(word) for place, word in zip(self.begin, self.words, strict=True)))
            return tuple(place > end for place, end in zip(self.begin, ends, strict=False))
        if all(len(word) == 1 for word in self.words):  # single characters: a text split everywhere
            return (False,) * len(self.words)
        return (False, *(not (_is_wide(a[-1]) or _is_wide(b[0])) for a, b in pairwise(self.words)))

    def text(self, start: int, end: int) -> str:
        """Some of the words as running text."""
        gaps = self.has_space_before
        return "".join(f" {self.words[n]}" if gaps[n] and n > start else self.words[n] for n in range(start, end))

    def source_span(self, start: int, end: int) -> tuple[int, int]:
        """The position of some words in the file: in characters for a running text, else in words."""
        return (self.begin[start], self.begin[end - 1] + len(self.words[end - 1])) if self.begin else (start, end)


def _is_wide(character: str) -> bool:
    """Whether a character belongs to a script without spaces, such as Chinese or Japanese."""
    return east_asian_width(character) in "WF"


@dataclass(frozen=True, slots=True)
class Tagging(Objective):
    """Token classification at the first piece of each word: dropout and a linear layer (Devlin et al., 2018).

    With a CRF, the tags of a row are scored together (Lafferty et al., 2001; Lample et al., 2016).
    """

    labels: tuple[str, ...]
    scheme: TagScheme
    crf: bool = False
    name: str = "tag"
    weight: float = 1.0
    target_type: ClassVar[type[Target]] = TokenLabels
    facts: ClassVar[frozenset[str]] = frozenset()
    prepares_batch: ClassVar[bool] = True

    def build_head(self, backbone: Backbone) -> nn.Module:
        """A linear or a CRF head, with the dropout of the encoder."""
        from unmask.objectives.heads.tagging import CRFHead, TokenClassificationHead

        if self.crf:
            return CRFHead(backbone.config, self.name, *allowed_transitions(self.labels, self.scheme))
        return TokenClassificationHead(backbone.config, self.name, len(self.labels))

    def prepare(self, batch: Batch) -> Batch:
        """Without a CRF, drop the row lengths of the labels: they would only split shape buckets."""

        def without_lengths(one: BatchTarget) -> BatchTarget:
            return replace(one, lengths=()) if isinstance(one, TokenLabels) and one.name == self.name else one

        return batch if self.crf else replace(batch, targets=tuple(map(without_lengths, batch.targets)))

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One for each tagged word."""
        return sum(
            len(one.positions) for one in instance.targets if isinstance(one, TokenLabels) and one.name == self.name
        )

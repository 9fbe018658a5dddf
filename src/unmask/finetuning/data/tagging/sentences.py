"""A class for each word: what is asked about a sentence, and what a network learns to say.

What arrives: words, cut by whoever wrote the file, and their tags. What leaves: questions, and an objective that reads
the first piece of each word.
What never happens here: torch, until a head is asked for.
"""

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
    """The words of a sentence, and a tag for each of them; no tags where they are unknown."""

    words: Texts
    truth: Texts = ()
    begin: tuple[int, ...] = ()
    """Where each word begins in its running text, in characters; nothing where the file gave words only."""

    @property
    def texts(self) -> Texts:
        """What is read."""
        return self.words

    def to_json(self) -> dict[str, object]:
        """The words, their tags if they are known, and where they begin if they stood in a text."""
        known = {"tags": self.truth, "begin": self.begin}
        return {"words": self.words, **{name: value for name, value in known.items() if value}}

    @property
    def has_space_before(self) -> tuple[bool, ...]:
        """Whether a space stands before each word: as in the text, or as scripts usually do."""
        if self.begin:
            ends = (0, *(place + len(word) for place, word in zip(self.begin, self.words, strict=True)))
            return tuple(place > end for place, end in zip(self.begin, ends, strict=False))
        if all(len(word) == 1 for word in self.words):  # single characters: a text that was cut everywhere
            return (False,) * len(self.words)
        return (False, *(not (_is_wide(a[-1]) or _is_wide(b[0])) for a, b in pairwise(self.words)))

    def text(self, start: int, end: int) -> str:
        """Some of the words as running text."""
        gaps = self.has_space_before
        return "".join(f" {self.words[n]}" if gaps[n] and n > start else self.words[n] for n in range(start, end))

    def source_span(self, start: int, end: int) -> tuple[int, int]:
        """Where some words stand in the file: in characters if it gave a running text, else counted in words."""
        return (self.begin[start], self.begin[end - 1] + len(self.words[end - 1])) if self.begin else (start, end)


def _is_wide(character: str) -> bool:
    """Whether a character belongs to a script that writes no spaces: Chinese, Japanese."""
    return east_asian_width(character) in "WF"


@dataclass(frozen=True, slots=True)
class Tagging(Objective):
    """Says the tag of each word from its first piece: dropout and a linear layer (Devlin et al., 2018).

    With a CRF, the tags of a row are scored together (Lafferty et al., 2001; Lample et al., 2016).
    """

    labels: tuple[str, ...]
    scheme: TagScheme
    crf: bool = False
    name: str = "tag"
    weight: float = 1.0
    target_type: ClassVar[type[Target]] = TokenLabels
    facts: ClassVar[frozenset[str]] = frozenset()

    def build_head(self, backbone: Backbone) -> nn.Module:
        """As much is dropped out before the tags as anywhere in the trunk."""
        from unmask.objectives.heads.tagging import CRFHead, TokenClassificationHead

        if self.crf:
            return CRFHead(backbone.config, self.name, *allowed_transitions(self.labels, self.scheme))
        return TokenClassificationHead(backbone.config, self.name, len(self.labels))

    def prepare(self, batch: Batch) -> Batch:
        """Where every tag is said for itself, how many a row has is nobody's matter."""

        def alone(one: BatchTarget) -> BatchTarget:
            return replace(one, lengths=()) if isinstance(one, TokenLabels) and one.name == self.name else one

        return batch if self.crf else replace(batch, targets=tuple(map(alone, batch.targets)))

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each tagged word."""
        return sum(
            len(one.positions) for one in instance.targets if isinstance(one, TokenLabels) and one.name == self.name
        )

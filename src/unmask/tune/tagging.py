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

from unmask.objectives.part import Question
from unmask.records import Instance, Tags, Target
from unmask.tune.sheet import Texts
from unmask.tune.tagging_scheme import Scheme, legal
from unmask.views import Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.answers import Answers
    from unmask.nets.batch import Batch
    from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class TagQuestion:
    """The words of a sentence, and a tag for each of them; no tags where they are unknown."""

    words: Texts
    truth: Texts = ()
    begin: tuple[int, ...] = ()
    """Where each word begins in its running text, in characters; nothing where the file gave words only."""

    @property
    def texts(self) -> Texts:
        """What is read."""
        return self.words

    def line(self) -> dict[str, object]:
        """The words, their tags if they are known, and where they begin if they stood in a text."""
        known = {"tags": self.truth, "begin": self.begin}
        return {"words": self.words, **{name: value for name, value in known.items() if value}}

    @property
    def spaced(self) -> tuple[bool, ...]:
        """Whether a space stands before each word: as in the text, or as scripts usually do."""
        if self.begin:
            ends = (0, *(place + len(word) for place, word in zip(self.begin, self.words, strict=True)))
            return tuple(place > end for place, end in zip(self.begin, ends, strict=False))
        if all(len(word) == 1 for word in self.words):  # single characters: a text that was cut everywhere
            return (False,) * len(self.words)
        return (False, *(not (_is_wide(a[-1]) or _is_wide(b[0])) for a, b in pairwise(self.words)))

    def text(self, start: int, end: int) -> str:
        """Some of the words as running text."""
        gaps = self.spaced
        return "".join(f" {self.words[n]}" if gaps[n] and n > start else self.words[n] for n in range(start, end))

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where some words stand in the file: in characters if it gave a running text, else counted in words."""
        return (self.begin[start], self.begin[end - 1] + len(self.words[end - 1])) if self.begin else (start, end)


def _is_wide(character: str) -> bool:
    """Whether a character belongs to a script that writes no spaces: Chinese, Japanese."""
    return east_asian_width(character) in "WF"


@dataclass(frozen=True, slots=True)
class SayTags:
    """Says the tag of each word from its first piece: dropout and a linear layer (Devlin et al., 2018).

    With a CRF, the tags of a row are scored together (Lafferty et al., 2001; Lample et al., 2016).
    """

    labels: tuple[str, ...]
    scheme: Scheme
    crf: bool = False
    name: str = "tag"
    weight: float = 1.0
    reads: ClassVar[type[Target]] = Tags
    first_only: ClassVar[bool] = False
    facts: ClassVar[frozenset[str]] = frozenset()

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """As much is dropped out before the tags as anywhere in the trunk."""
        from unmask.objectives.tagging import TagHead, TagsTogether

        if self.crf:
            return TagsTogether(trunk, self.name, *legal(self.labels, self.scheme))
        return TagHead(trunk, self.name, len(self.labels))

    def prepare(self, batch: Batch) -> Batch:
        """Where every tag is said for itself, how many a row has is nobody's matter."""
        from unmask.nets.answers import TagAnswers

        def alone(one: Answers) -> Answers:
            return replace(one, lengths=()) if isinstance(one, TagAnswers) and one.name == self.name else one

        return batch if self.crf else replace(batch, answers=tuple(map(alone, batch.answers)))

    def asked(self, instance: Instance) -> int:
        """One answer for each tagged word."""
        return sum(len(one.positions) for one in instance.targets if isinstance(one, Tags) and one.name == self.name)

"""What a user says about a task beyond its files: what is asked, which fields hold it, how it is read out.

What arrives: words of the command line. What leaves: a `Wish`.
What never happens here: reading a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from unmask.errors import InputError
from unmask.nets.reading import ReadOut
from unmask.tune.fields import NO_CHOICE, Choice
from unmask.tune.manner import Manner
from unmask.tune.output import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Everything has a usual value; a kind that is not given is read from the file."""

    kind: Kind | None = None
    choice: Choice = NO_CHOICE
    longest: int | None = None
    """The most tokens of an answer that is copied from a passage; if not given, the training file decides."""
    read: ReadOut = ReadOut.FIRST
    """Which tokens of a row speak for it, where one thing is said about a whole row."""
    most: int = 16
    """The most candidates of a group that is learned from at once (ranking)."""
    bounded: bool = False
    """Whether scores go through a sigmoid before candidates are compared, as in MT-DNN's paper (ranking)."""
    crf: bool = False
    """Whether the tags of a sentence are chosen together, by a conditional random field."""
    legal: bool = False
    """Whether only tags that may follow each other are said, where each is chosen by itself."""

    manner: Manner = Manner()
    """How texts are written."""


NO_WISH = Wish()
AUTO = "auto"
"""What a user writes where the file shall decide."""
_ROWS = (Kind.CLASSIFY, Kind.LABELS, Kind.REGRESS, Kind.CHOOSE, Kind.RANK)
_FITS: Mapping[str, tuple[Kind, ...]] = MappingProxyType(
    {
        "--read": _ROWS,
        "--crf": (Kind.TAG,),
        "--legal": (Kind.TAG,),
        "--longest": (Kind.SPAN,),
        "--candidates": (Kind.RANK,),
        "--version": (Kind.WRITE,),
        "--beam": (Kind.WRITE,),
        "--most": (Kind.WRITE,),
    }
)
"""Which kinds of questions an option says something to."""


def kind_named(word: str) -> Kind | None:
    """The kind that a user wrote; nothing where the file decides."""
    if word not in ("", AUTO, *Kind):
        raise InputError(f"There is no kind '{word}'. Choose one of: {AUTO}, {', '.join(Kind)}.")
    return None if word in ("", AUTO) else Kind(word)


def check_options(kind: Kind, given: Mapping[str, bool]) -> None:
    """Refuse an option that was given and says nothing to this kind of question."""
    for option, was_given in given.items():
        if was_given and kind not in _FITS[option]:
            raise InputError(f"{option} says nothing to --kind {kind}; it is for {' and '.join(_FITS[option])}.")

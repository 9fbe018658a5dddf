"""The stream of documents that a corpus is made of: read, cleaned, without duplicates, cut into the text of shards.

What arrives: sources and the first half of the settings. What leaves: batches of documents, always cut at the same
places, each with the digest of its text; and a tally of everything that was left out.
What never happens here: finding units or tokenising. This part runs in one process and must stay cheap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from unmask.records import Document, Dropped, Layer
from unmask.shards.batch import Batch, text_digest
from unmask.text.clean import Cleaning
from unmask.text.dedup import ExactSeen, NearSeen, Resemblance
from unmask.text.read import Reading, read
from unmask.text.reasons import Reason

LISTED = 1000
"""So many left-out pieces are listed for each reason; all are counted."""


@dataclass(frozen=True, slots=True)
class Collecting:
    """How documents are read and which are kept."""

    reading: Reading = Reading()
    cleaning: Cleaning = Cleaning()
    near: tuple[Resemblance, ...] = ()
    """Also leave out near duplicates, if a measure of resemblance is given."""

    def describe(self) -> dict[str, str]:
        """Lines for the manifest."""
        lines = {"read": repr(self.reading), "clean": self.cleaning.describe(), "duplicates": "exact"}
        if self.near:
            lines["near duplicates"] = repr(self.near[0])
        if self.reading.dialogues:
            lines["dialogues"] = ", ".join(sorted(path.name for path in self.reading.dialogues))
        return lines


@dataclass
class Tally:
    """What was left out or changed on the way."""

    dropped: Counter[str] = field(default_factory=Counter)
    listed: list[Dropped] = field(default_factory=list)
    removed: int = 0

    def drop(self, piece: Dropped) -> None:
        """Count a piece that was left out, and list it unless the list is long already."""
        self.dropped[piece.reason] += 1
        if self.dropped[piece.reason] <= LISTED:
            self.listed.append(piece)


def collect(
    sources: Sequence[str], how: Collecting, tally: Tally, progress: Callable[[int], None] = lambda _: None
) -> Iterator[Document]:
    """Every document that is to be kept, in the order of the input."""
    filters = [(Reason.DUPLICATE, ExactSeen())] + [(Reason.NEAR_DUPLICATE, NearSeen(near)) for near in how.near]
    for piece in read(sources, how.reading, progress):
        if isinstance(piece, Dropped):
            tally.drop(piece)
            continue
        cleaned = how.cleaning(piece)
        tally.removed += cleaned.removed
        document = cleaned.result
        if isinstance(document, Dropped):
            tally.drop(document)
            continue
        again = next((reason for reason, seen in filters if seen.seen(document)), None)
        if again is None:
            yield document
        else:
            tally.drop(Dropped(again, document.id))


def batches(sources: Sequence[str], how: Collecting, characters: int, tally: Tally) -> Iterator[Batch]:
    """Documents in batches of at least so many characters (the last one may be smaller).

    Text and conversations are never in one batch: the last documents of every shard are held out, and both must be.
    """
    place = _Place()
    held: list[Document] = []
    size = number = 0
    for document in collect(sources, how, tally, place.set):
        if held and (Layer.TURN in document.marks) != (Layer.TURN in held[-1].marks):
            yield Batch(number, tuple(held), text_digest(held), place.bytes)
            held, size, number = [], 0, number + 1
        held.append(document)
        size += len(document.text)
        if size >= characters:
            yield Batch(number, tuple(held), text_digest(held), place.bytes)
            held, size, number = [], 0, number + 1
    if held:
        yield Batch(number, tuple(held), text_digest(held), place.bytes)


class _Place:
    """How far the reader has come."""

    def __init__(self) -> None:
        self.bytes = 0

    def set(self, position: int) -> None:
        self.bytes = position

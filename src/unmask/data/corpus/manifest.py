"""What a prepared corpus says of itself: where it came from, how it was made, what it holds.

What arrives: the counts and digests of the finished shards. What leaves: `manifest.json`, written last.
What never happens here: anything that differs between two runs over the same text, such as times or process counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from unmask.core.errors import CorpusError
from unmask.core.io.atomic import read_versioned_json, write_versioned_json
from unmask.core.records import UnitKind


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is of everything."""

    documents: int = 0
    sentences: int = 0
    words: int = 0
    phrases: int = 0
    entities: int = 0
    characters: int = 0
    tokens: int = 0
    unknown: int = 0
    """Tokens that the vocabulary does not know."""
    empty: int = 0
    """Documents of which the tokenizer leaves nothing. They are not in the shards, and not counted above."""
    dialogues: int = 0
    """Documents that are conversations."""
    turns: int = 0
    """Turns of conversations."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """One shard: what it holds, the digest of the text it was made of, and the digests of its files."""

    counts: Counts
    source: str
    files: dict[str, str]
    labels: tuple[str, ...] = ()
    """The names of entity labels, in the order of their numbers in this shard."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole prepared corpus."""

    tokenizer: str
    """Digest of tokenizer.json."""
    corpus: str
    """Digest of the cleaned text, document by document."""
    layers: tuple[UnitKind, ...]
    steps: dict[str, Any]
    """Every step of the preparation with its settings, in order."""
    counts: Counts
    dropped: dict[str, int]
    """How many pieces of input were left out, by reason."""
    changed: dict[str, int]
    """How many characters were removed or replaced, by reason."""
    shards: tuple[ShardInfo, ...] = field(default=())

    def save(self, path: Path) -> None:
        """Write the manifest; its presence says that the corpus is complete."""
        write_versioned_json(path, asdict(self))

    @staticmethod
    def load(folder: Path) -> Manifest:
        """Read the manifest of a prepared folder."""
        path = folder / "manifest.json"
        if not path.exists():
            raise CorpusError(
                f"{folder} holds no prepared corpus: there is no manifest.json. "
                + (
                    "Preparing was begun there; start the same command again to finish it."
                    if (folder / "work.json").exists()
                    else f"Make one with: unmask prepare CORPUS --out {folder}"
                )
            )
        value = read_versioned_json(path)
        try:
            return _manifest(value)
        except (KeyError, TypeError, ValueError) as error:
            raise CorpusError(f"{path} is damaged ({error!r}). Prepare the corpus again.") from error


def _manifest(value: dict[str, Any]) -> Manifest:
    return Manifest(
        **{
            **value,
            "layers": tuple(UnitKind(name) for name in value["layers"]),
            "counts": Counts(**value["counts"]),
            "shards": tuple(shard_info(shard) for shard in value["shards"]),
        }
    )


def shard_info(value: dict[str, Any]) -> ShardInfo:
    """A shard's record from its JSON."""
    return ShardInfo(Counts(**value["counts"]), value["source"], value["files"], tuple(value["labels"]))


def shard_folder(folder: Path, number: int) -> Path:
    """Where a shard lies in a prepared folder."""
    return folder / "shards" / f"{number:05d}"

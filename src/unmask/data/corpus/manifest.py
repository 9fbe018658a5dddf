"""The manifest of a prepared corpus: counts, digests and settings.

It is written last, and equal for two runs over the same text: no times, no process counts.
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
    """The contents of a corpus or shard, in numbers."""

    documents: int = 0
    sentences: int = 0
    words: int = 0
    phrases: int = 0
    entities: int = 0
    characters: int = 0
    tokens: int = 0
    unknown: int = 0
    """Unknown tokens."""
    empty: int = 0
    """Documents without tokens, which are not in the shards and not counted above."""
    dialogues: int = 0
    """Documents that are dialogues."""
    turns: int = 0
    """Turns of dialogues."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """One shard: its counts, the digest of its text, and the digests of its files."""

    counts: Counts
    source: str
    files: dict[str, str]
    labels: tuple[str, ...] = ()
    """Entity labels, in the order of their numbers in this shard."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a corpus."""

    tokenizer: str
    """Digest of tokenizer.json."""
    corpus: str
    """Digest of the cleaned text, document by document."""
    layers: tuple[UnitKind, ...]
    steps: dict[str, Any]
    """All steps of the preparation with their settings, in order."""
    counts: Counts
    dropped: dict[str, int]
    """The number of dropped pieces by reason."""
    changed: dict[str, int]
    """The number of removed or replaced characters by reason."""
    shards: tuple[ShardInfo, ...] = field(default=())

    def save(self, path: Path) -> None:
        """Write the manifest, which marks the corpus as complete."""
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
    """The record of a shard from its JSON."""
    return ShardInfo(Counts(**value["counts"]), value["source"], value["files"], tuple(value["labels"]))


def shard_folder(folder: Path, number: int) -> Path:
    """The folder of a shard."""
    return folder / "shards" / f"{number:05d}"

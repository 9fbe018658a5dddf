"""Recipes as data: saved as JSON, compared, changed by path, shown as a tree, and named by a digest."""

from unmask.core.codec.override import override, override_many
from unmask.core.codec.part_names import tag_of
from unmask.core.codec.pretty import Difference, difference, to_tree
from unmask.core.codec.serialize import TAG, Json, decode, dumps, encode, fill_defaults, fingerprint

__all__ = [
    "TAG",
    "Difference",
    "Json",
    "decode",
    "difference",
    "dumps",
    "encode",
    "fill_defaults",
    "fingerprint",
    "override",
    "override_many",
    "tag_of",
    "to_tree",
]

"""A recipe is data: it is saved, compared, changed by name, named by a digest and told to a person."""

from unmask.core.codec.override import override, override_many
from unmask.core.codec.pretty import Difference, difference, to_tree
from unmask.core.codec.serialize import Json, decode, dumps, encode, fingerprint

__all__ = [
    "Difference",
    "Json",
    "decode",
    "to_tree",
    "difference",
    "dumps",
    "encode",
    "fingerprint",
    "override",
    "override_many",
]

"""A recipe is data: it is saved, compared, changed by name, named by a digest and told to a person."""

from unmask.codec.changed import override, override_all
from unmask.codec.told import Difference, describe, difference
from unmask.codec.values import Json, decode, dumps, encode, fingerprint

__all__ = [
    "Difference",
    "Json",
    "decode",
    "describe",
    "difference",
    "dumps",
    "encode",
    "fingerprint",
    "override",
    "override_all",
]

"""Small text files line by line, and explanations of encoding errors.

An encoding is named in the error so that the file can be converted; it is never guessed for reading.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from unmask.core.errors import InputError

_COMMON = range(0xB0, 0xD8)
"""The first bytes of the 3,755 common characters in GB 2312 and all its successors."""
_CHINESE = 0.6


def numbered_lines(path: Path, what: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a UTF-8 file, decompressed if it ends with .gz. `what` is its name in errors: "phrase
    list".
    """
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except FileNotFoundError as error:
        raise InputError(f"the {what} cannot be read; there is no such file: {path}.") from error
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", "") or error
        raise InputError(f"{path}: the {what} cannot be read ({why}).") from error
    for number, raw in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        try:
            yield number, raw.decode().removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}:{number}: the {what} must be UTF-8, but {explain_decode_error(error)}."
            ) from error


def check_surrogates(text: str, where: str) -> str:
    """The same text; a lone surrogate, which JSON and shells can contain, is refused."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{where}: the text holds half of a surrogate pair, which is no character. Correct the line.")
    return text


def explain_decode_error(error: UnicodeDecodeError) -> str:
    """The position of invalid bytes, and how to convert the file if its encoding is likely known."""
    problem = f"byte 0x{error.object[error.start]:02x} does not belong there"
    if not looks_like_gbk(error.object):
        return f"{problem}; a file in another encoding is converted with: iconv -f ENCODING -t UTF-8 FILE"
    return f"{problem}; it looks like GBK; convert with: iconv -f GB18030 -t UTF-8 FILE"


def looks_like_gbk(data: bytes) -> bool:
    """Whether the bytes, read as GB 18030, are mostly common Chinese characters and ASCII."""
    try:
        wide = [sign.encode("gb18030") for sign in data.decode("gb18030") if not sign.isascii()]
    except UnicodeError:
        return False
    return sum(code[0] in _COMMON for code in wide) > _CHINESE * len(wide)

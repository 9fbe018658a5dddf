"""A file that is one JSON value: lists and objects inside each other, as reading comprehension is handed around.

What arrives: the lines of a `.json` file. What leaves: its value.
What never happens here: a guess at what it means. That is for whoever knows what the file should hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from unmask.core.errors import InputError
from unmask.data.text.drop_reasons import DropReason
from unmask.data.text.files.delimited import decode_lines


def read_nested(lines: Iterator[bytes], name: str) -> object:
    """The value of a whole file; broken JSON and other encodings are refused with their line."""
    text = "\n".join(decode_lines(lines, name))
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}: {DropReason.BROKEN_JSON} ({error.msg}). {_advice(error)}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise InputError(f"{name}: {DropReason.BROKEN_JSON} ({error}). Correct the file.") from error
    return value


def _advice(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "A second value begins here; if the file holds one object a line, rename it to .jsonl."
    return "Correct the file."

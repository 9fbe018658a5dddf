"""Other libraries, which are loaded only when something is compared with them.

What arrives: a name. What leaves: the module, or a sentence that says how to install it.
What never happens here: advice or bars of the other library on the terminal, or settings of it that stay changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from unmask.core.errors import UserError


def require(name: str, extra: str, reason: str) -> ModuleType:
    """A library; where it is missing, `reason` says what for and `extra` names what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(
            f"{reason}, and {name} is not installed. Install it with: pip install 'unmask[{extra}]'"
        ) from error


def require_transformers() -> ModuleType:
    """The library whose folders are written."""
    return require("transformers", "export", "An export is compared with transformers before it is kept")


@contextlib.contextmanager
def quiet_transformers(transformers: ModuleType) -> Iterator[None]:
    """No bars and no advice from the other library while it reads; its settings come back afterwards."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()

"""Optional libraries, imported when an export is compared with them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from unmask.core.errors import UserError


def require(name: str, extra: str, reason: str) -> ModuleType:
    """Import a library. If it is missing, the error names the `reason` and the `extra` to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(
            f"{reason}, and {name} is not installed. Install it with: pip install 'unmask[{extra}]'"
        ) from error


def require_transformers() -> ModuleType:
    """Import transformers."""
    return require("transformers", "export", "An export is compared with transformers before it is kept")


@contextlib.contextmanager
def quiet_transformers(transformers: ModuleType) -> Iterator[None]:
    """Disable progress bars and messages of transformers in a context."""
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

"""What transformers says and raises, as one line or not at all."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import transformers

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened


@contextmanager
def one_line(problem: str) -> Iterator[None]:
    """Whatever transformers raises within is an error of one line."""
    try:
        with without_warnings():
            yield
    except BuddysimError:
        raise
    except Exception as error:
        text = shortened(" ".join(str(error).split()), 200)[1:-1]
        raise BuddysimError(f"{problem}: {text or type(error).__name__}") from None


@contextmanager
def without_warnings() -> Iterator[None]:
    """What transformers says within of a configuration or of inputs is not shown."""
    level = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        transformers.utils.logging.set_verbosity(level)

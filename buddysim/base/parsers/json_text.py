"""JSON as Python's module reads it: without bounds, for `base.textfile` and for records that were checked by a sum."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from buddysim.base.parsers.refusal import refusal


def loads(text: str | bytes, begin: str, pairs: Callable[[Any], Any] | None = None) -> Any:
    """Return the content of a text.

    Parameters
    ----------
    begin : of an error
    pairs : a type that objects become: ``tuple`` keeps keys that occur twice

    Raises
    ------
    BuddysimError
        where it is no JSON
    """
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except Exception as error:
        raise refusal(error, begin) from None

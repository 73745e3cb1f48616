"""Contents of a file as tables that know the file: a missing key is an error of one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened


class SavedTable(dict[Any, Any]):
    """A table of a file, a `dict` whose missing key is a BuddysimError with the file and the key.

    Parameters
    ----------
    content : names and values
    where : the file, and the table within it
    """

    def __init__(self, content: dict[Any, Any], where: str) -> None:
        super().__init__(content)
        self._where = where

    def __missing__(self, key: object) -> Any:
        name = shortened(key)[1:-1] if isinstance(key, str) else shortened(key)
        raise BuddysimError(f"{self._where}: {name} is missing")


def saved_tables(content: Any, where: str, text_of: Callable[[str], str] = str) -> Any:
    """Return a content whose tables, at any depth, are `SavedTable`.

    Parameters
    ----------
    where : what errors begin with
    text_of : what becomes of each text
    """
    if isinstance(content, dict):
        tables = {
            saved_tables(key, where, text_of): saved_tables(value, f"{where}: {key}", text_of)
            for key, value in content.items()
        }
        return SavedTable(tables, where)
    if isinstance(content, list):
        return [saved_tables(value, f"{where}[{index}]", text_of) for index, value in enumerate(content)]
    return text_of(content) if isinstance(content, str) else content

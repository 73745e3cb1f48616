"""A table of a plan file while it is read: each key is taken once, and what is left over is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

#: Bytes and picoseconds of a file, at most.
LARGEST = 2**62


class PlanTable:
    """A table with its position in the file, for messages.

    Parameters
    ----------
    content : by key
    where : ``"block 2"``; empty for the file
    """

    def __init__(self, content: Any, where: str = "") -> None:
        if not isinstance(content, Mapping):
            raise BuddysimError(f"{where}: {shortened(content)}: expected a table of keys")
        self.left = dict(content)
        self.where = where
        self.known: list[str] = []

    def problem(self, key: str, value: Any, expected: str) -> BuddysimError:
        """Return the error of a wrong value."""
        at = f"{self.where}: {key}" if self.where else key
        return BuddysimError(f"{at}: {shortened(value)}: expected {expected}")

    def has(self, key: str) -> bool:
        """Whether a key is left."""
        return key in self.left

    def whole(self, key: str, default: int | None, least: int = 0, most: int = LARGEST) -> int:
        """Take an integer; one without a default must be there."""
        value = self._taken(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.problem(key, value, f"an integer from {least} to {most}")
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """Take a number."""
        value = self._taken(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.problem(key, value, f"a number from {least:g} to {most:g}")
        return float(value)

    def switch(self, key: str, default: bool) -> bool:
        """Take a boolean."""
        value = self._taken(key, default)
        if not isinstance(value, bool):
            raise self.problem(key, value, "true or false")
        return value

    def name(self, key: str, default: str | None, names: Iterable[str] = ()) -> str:
        """Take a text, one of `names` where there are some."""
        value, among = self._taken(key, default), tuple(names)
        if not isinstance(value, str):
            raise self.problem(key, value, "a text")
        if among and value not in among:
            raise self.problem(key, value, f"one of {', '.join(among)}{hint(value, among)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Take a list of texts, empty if the key is missing."""
        value = self._taken(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise self.problem(key, value, "a list of names")
        return tuple(value)

    def values(self, key: str) -> list[Any]:
        """Take a list, empty if the key is missing."""
        value = self._taken(key, [])
        if not isinstance(value, list):
            raise self.problem(key, value, "a list")
        return value

    def table(self, key: str) -> PlanTable | None:
        """Take a table; None if the key is missing."""
        if not self.has(key):
            self.known.append(key)
            return None
        return PlanTable(self._taken(key, None), f"{self.where}.{key}" if self.where else key)

    def tables(self, key: str) -> list[PlanTable]:
        """Take a list of tables."""
        return [PlanTable(one, f"{key} {number}") for number, one in enumerate(self.values(key), start=1)]

    def end(self) -> None:
        """Refuse what is left.

        Raises
        ------
        BuddysimError
            an unknown key
        """
        for key in self.left:
            at = f"{self.where}: {shortened(key)}" if self.where else shortened(key)
            raise BuddysimError(f"{at}: unknown: expected one of {', '.join(self.known)}{hint(key, self.known)}")

    def _taken(self, key: str, default: Any) -> Any:
        self.known.append(key)
        if key not in self.left:
            if default is None:
                at = f"{self.where}: {key}" if self.where else key
                raise BuddysimError(f"{at}: this key is missing: expected a value")
            return default
        return self.left.pop(key)

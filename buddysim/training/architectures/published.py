"""Published models whose shapes come with the package: a configuration by name.

The shapes are facts, from the models' papers and ``config.json`` files; ``_facts`` of each says how many parameters it
has, and whether that equals the published count to the unit. Where a paper prints a shape that contradicts itself
(GPT-3 XL and 13B), a note says what is taken.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.textfile import read_json
from buddysim.training.architectures.read_config import ReadConfig, UnreadConfig, parse_config

_FILE = Path(__file__).parent / "data" / "models.json"


@cache
def contents() -> dict[str, dict[str, Any]]:
    """Every published model's keys, as a ``config.json`` has them, by name."""
    models: dict[str, dict[str, Any]] = read_json(_FILE, "list of models", 1 << 20)
    return models


def names() -> tuple[str, ...]:
    """The names, in alphabetical order."""
    return tuple(sorted(contents()))


def published_config(name: str) -> ReadConfig:
    """Return the configuration of a name.

    Raises
    ------
    BuddysimError
        an unknown name
    """
    if name not in contents():
        raise BuddysimError(
            f"model {shortened(name)}: unknown, expected one of {', '.join(names())}{hint(name, names())}"
        )
    return parse_config(UnreadConfig(contents()[name], name, name))

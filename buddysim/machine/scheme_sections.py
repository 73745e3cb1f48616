"""The sections of a machine file that belong to replay schemes.

A scheme's parameters are a `Section` in its own module (``SECTION`` of its `Scheme` class). Machine files have it under
its ``SECTION_NAME``, by default the scheme's name with ``_`` for ``-``. The machine imports no scheme: it asks their
registry, plug-ins included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from buddysim.base.kinds import registry
from buddysim.machine.section import Section


def scheme_sections() -> dict[str, type[Section]]:
    """The section of each replay scheme that has one, by its name in a machine file, in the order of the schemes."""
    return {name: scheme.SECTION for name, scheme in _schemes()}


def plugin_sections() -> set[str]:
    """The names of those sections whose schemes are plug-ins'."""
    package = __name__.partition(".")[0]
    return {name for name, scheme in _schemes() if scheme.__module__.partition(".")[0] != package}


def _schemes() -> Iterator[tuple[str, Any]]:
    """The schemes that have a section, by its name."""
    return (
        (scheme.SECTION_NAME or name.replace("-", "_"), scheme)
        for name, scheme in registry("replay scheme").items()
        if scheme.SECTION is not None
    )

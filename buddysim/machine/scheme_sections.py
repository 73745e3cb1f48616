"""The sections of a machine file that belong to replay schemes.

A scheme's knobs are a `Section` of its own module (``SECTION`` of its `Scheme` class); machine files have it under the
scheme's name, ``_`` for ``-``. The machine imports no scheme: it asks the registry of what there is, plug-ins included.
"""

from __future__ import annotations

from buddysim.base.kinds import registry
from buddysim.machine.section import Section


def scheme_sections() -> dict[str, type[Section]]:
    """The section of each replay scheme that has one, by its name in a machine file, in the order of the schemes."""
    schemes = registry("replay scheme").items()
    return {name.replace("-", "_"): scheme.SECTION for name, scheme in schemes if scheme.SECTION is not None}


def comes_with_buddysim(section: type[Section]) -> bool:
    """Whether a section is of a scheme of this package, not of a plug-in."""
    return section.__module__.partition(".")[0] == __name__.partition(".")[0]

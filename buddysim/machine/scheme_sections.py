"""The sections of a machine file that belong to replay schemes, and the names of those of policies.

A scheme's parameters are sections in its own module or folder, by name in ``SECTIONS`` of its `Scheme` class. A
policy's are one section, ``SECTION`` of its class. The machine imports neither: it asks their registries, plug-ins
included.
"""

from __future__ import annotations

from buddysim.base import plugins
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import registry
from buddysim.machine.section import Section


@plugins.cached_by_plugins
def scheme_sections() -> dict[str, type[Section]]:
    """The sections of replay schemes, by name in a machine file, in the order of the schemes.

    Raises
    ------
    BuddysimError : schemes have different sections of one name
    """
    sections = dict[str, type[Section]]()
    for scheme_name, scheme in registry("replay scheme").items():
        for name, section in scheme.SECTIONS.items():
            if sections.setdefault(name, section) is not section:
                raise BuddysimError(
                    f"replay scheme {scheme_name}: SECTIONS: another scheme has a section [{name}] of its own"
                )
    return sections


@plugins.cached_by_plugins
def plugin_sections() -> set[str]:
    """The names of those sections that only schemes of plug-ins have."""
    package, own, others = __name__.partition(".")[0], set[str](), set[str]()
    for _, scheme in registry("replay scheme").items():
        (own if scheme.__module__.partition(".")[0] == package else others).update(scheme.SECTIONS)
    return others - own


def section_name(kind: str, policy: str) -> str:
    """Return the dotted name of a policy's section: ``write_drain.when_full``."""
    return f"{kind.lower().replace(' ', '_')}.{policy}"

"""The base of every memory configuration, and the list of those there are."""
import importlib
import pkgutil

from buddysim.base.errors import BuddysimError
from buddysim.replay.engine.memory cimport MemorySystem


cdef class SchemeBase:
    """A memory configuration. A subclass named `Scheme` in `schemes/NAME.pyx` sets `fill` and `writeback`."""

    #: Targets are applied: entries have a device part and a buddy part.
    uses_targets = False
    #: Entry sizes matter.
    uses_sizes = False
    #: What the scheme assumes that the other ones don't, for the result.
    assumptions: dict[str, str] = {}
    #: The scheme's section of a machine file (a `buddysim.machine.section.Section`), where it has knobs of its own.
    SECTION = None

    cdef int prepare(self, MemorySystem* m) except -1:
        """Sets what the scheme keeps in the memory system; called once, after regions and sizes are there."""
        return 0


def scheme_names():
    """Names of the schemes, sorted.

    Returns
    -------
    list of str
    """
    package = importlib.import_module("buddysim.replay.schemes")
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def load_scheme(name):
    """The scheme of a name.

    Raises
    ------
    BuddysimError : no such scheme; the message names the nearest
    """
    import difflib

    names = scheme_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise BuddysimError(f"unknown scheme {name!r}: expected one of {', '.join(names)}{hint}")
    return importlib.import_module(f"buddysim.replay.schemes.{name}").Scheme()

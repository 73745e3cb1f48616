"""How this package's Cython files are compiled: the flags of `setup.py`, and of plug-ins, which must be the same."""

from __future__ import annotations

from collections.abc import Mapping

#: -ffp-contract=off: results must not depend on the machine.
COMPILE_ARGS = ("-O2", "-ffp-contract=off")

#: What the replay's event loop does for an operation becomes one function: passing times and places between a dozen
#: costs more than it saves (docs/performance.md).
INLINE_ALL = ("CYTHON_INLINE", "__inline__ __attribute__((always_inline))")


def directives(boundscheck: bool = False) -> Mapping[str, object]:
    """Cython's compiler directives.

    Parameters
    ----------
    boundscheck : whether every index is checked
    """
    return {
        "language_level": 3,
        "cdivision": True,
        "boundscheck": boundscheck,
        "wraparound": False,
        "initializedcheck": boundscheck,
        "embedsignature": True,
        "show_performance_hints": not boundscheck,
    }

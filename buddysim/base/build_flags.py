"""The flags with which Cython files are compiled: those of `setup.py` and of plug-ins, which must be the same."""

from __future__ import annotations

from collections.abc import Mapping

#: -ffp-contract=off: results must not depend on the computer running the simulator.
COMPILE_ARGS = ("-O2", "-ffp-contract=off")

#: Of the replay, and of plug-ins: GCC joins neighbouring stores of its structs in vectors, which costs more
#: instructions than the stores (docs/developers/performance.md).
REPLAY_ARGS = ("-fno-tree-vectorize",)

#: All that the replay's event loop does for an operation is inlined into one function: passing times and locations
#: between a dozen functions is slower (docs/developers/performance.md).
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

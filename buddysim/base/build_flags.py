"""The flags with which Cython files are compiled: those of `setup.py` and of plug-ins, which must be the same."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

#: -ffp-contract=off: results must not depend on the computer running the simulator.
COMPILE_ARGS = ("-O2", "-ffp-contract=off")

#: Python's own flags may ask for debugging information: it would be nine tenths of what the compiler writes. Symbol
#: tables, unwind tables and pages between segments are another third of an extension.
WITHOUT_DEBUG_INFO = ("-g0", "-fno-asynchronous-unwind-tables")
WITHOUT_SYMBOLS = (
    ("-Wl,-s", "-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-Wl,--build-id=none") if sys.platform == "linux" else ()
)

#: Cython's code for memoryviews, functions and the like, which every extension would have a copy of: one extension
#: that the others import. Cython writes its source.
SHARED_MODULE = "buddysim.base._cython_shared"

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


def run_cython(
    extension: Any,
    build_dir: str | None = None,
    boundscheck: bool = False,
    annotate: bool = False,
    shared: bool = True,
    include_path: Sequence[str] = (".",),
) -> tuple[list[str], list[str]]:
    """Write the C file of an extension where it is missing or older than what it is made of.

    Parameters
    ----------
    extension : a setuptools.Extension with one ``.pyx`` file, or `SHARED_MODULE`
    build_dir : folder of the C file; None: next to its source
    boundscheck : whether every index is checked
    annotate : whether Cython's annotated HTML is written next to it
    shared : whether the extension imports `SHARED_MODULE`
    include_path : where packages that it cimports from lie

    Returns
    -------
    C files, and the headers that they include
    """
    from Cython.Build import cythonize

    (compiled,) = cythonize(  # type: ignore[no-untyped-call]
        [extension],
        compiler_directives=dict(directives(boundscheck)),
        shared_utility_qualified_name=SHARED_MODULE if shared else None,
        build_dir=build_dir,
        include_path=list(include_path),
        annotate=annotate,
        quiet=True,
    )
    return compiled.sources, compiled.depends

"""The extensions and their flags; everything else is in pyproject.toml.

Environment: BUDDYSIM_MARCH=native compiles for this machine; BUDDYSIM_BOUNDSCHECK=1 checks every index;
BUDDYSIM_SANITIZE=1 builds with address and undefined-behaviour sanitizers; BUDDYSIM_ANNOTATE=1 writes Cython's
annotated HTML to build/.
"""

import os
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent

march = os.environ.get("BUDDYSIM_MARCH", "")
boundscheck = bool(os.environ.get("BUDDYSIM_BOUNDSCHECK"))
annotate = bool(os.environ.get("BUDDYSIM_ANNOTATE"))

# -ffp-contract=off: results must not depend on the machine.
compile_args = ["-O2", "-ffp-contract=off"]
link_args: list[str] = []
if march:
    compile_args.append(f"-march={march}")
if os.environ.get("BUDDYSIM_SANITIZE"):
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-fno-omit-frame-pointer"]
    compile_args += sanitize
    link_args += sanitize

directives = {
    "language_level": 3,
    "cdivision": True,
    "boundscheck": boundscheck,
    "wraparound": False,
    "initializedcheck": boundscheck,
    "embedsignature": True,
    "show_performance_hints": not boundscheck,
}

# What the replay's event loop does for an operation becomes one function: passing times and places between a dozen
# costs more than it saves (docs/performance.md).
INLINE_ALL = ("CYTHON_INLINE", "__inline__ __attribute__((always_inline))")
REPLAY = Path("buddysim", "replay")

sources = [source.relative_to(ROOT) for source in sorted((ROOT / "buddysim").rglob("*.pyx"))]
extensions = [
    Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        include_dirs=[numpy.get_include()],
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"),
            *([INLINE_ALL] if REPLAY in source.parents else []),
        ],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
    )
    for source in sources
]

# buddysim/beside.py finds them: beside the package in a clone, under share/buddysim in an installation.
beside: dict[str, list[str]] = {}
for folder in ("tools", "plots"):
    for path in sorted((ROOT / folder).rglob("*")):
        if path.is_file() and path.parent.name != "__pycache__" and path.suffix not in (".so", ".o", ".pyc"):
            place = path.relative_to(ROOT)
            beside.setdefault(f"share/buddysim/{place.parent.as_posix()}", []).append(place.as_posix())

setup(
    data_files=list(beside.items()),
    ext_modules=cythonize(
        extensions,
        compiler_directives=directives,
        build_dir="build/cython-boundscheck" if boundscheck else "build/cython",
        annotate=annotate,
        quiet=True,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)

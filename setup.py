"""The extensions and their flags; everything else is in pyproject.toml."""

import os
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent

compile_args = ["-O2", "-ffp-contract=off", "-fno-strict-aliasing"]
link_args: list[str] = []
if march := os.environ.get("BUDDYSIM_MARCH"):
    compile_args.append(f"-march={march}")
if os.environ.get("BUDDYSIM_SANITIZE"):
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-fno-omit-frame-pointer"]
    compile_args += sanitize
    link_args += sanitize

directives = {
    "language_level": 3,
    "cdivision": True,
    "boundscheck": bool(os.environ.get("BUDDYSIM_BOUNDSCHECK")),
    "wraparound": False,
    "initializedcheck": False,
    "embedsignature": True,
}

extensions = [
    Extension(
        ".".join(source.relative_to(ROOT).with_suffix("").parts),
        [str(source.relative_to(ROOT))],
        include_dirs=[numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
    )
    for source in sorted((ROOT / "buddysim").rglob("*.pyx"))
]

setup(ext_modules=cythonize(extensions, compiler_directives=directives))

"""Compiles a Cython file against this package's ``.pxd`` and ``.h`` files: ``compile_plugin.py SOURCE MODULE TARGET``.

A process of its own, because Cython and setuptools print and keep global state.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def same_cython() -> bool:
    """Whether this Cython built the package: extensions of another version cannot use its shared module."""
    from buddysim.base.build_flags import SHARED_MODULE

    importlib.import_module(SHARED_MODULE)
    # The name under which extensions of one version find each other's types.
    return f"_cython_{version('Cython').replace('.', '_')}" in sys.modules


def main() -> int:
    """Compile; return the exit code. A file that doesn't compile is the user's: the compiler has said why."""
    from Cython.Compiler.Errors import CompileError
    from setuptools.errors import BaseError  # type: ignore[import-untyped]

    try:
        _compile()
    except (CompileError, BaseError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _compile() -> None:
    from setuptools import Distribution, Extension  # type: ignore[import-untyped]
    from setuptools.command.build_ext import build_ext  # type: ignore[import-untyped]

    from buddysim.base.build_flags import COMPILE_ARGS, INLINE_ALL, REPLAY_ARGS, WITHOUT_DEBUG_INFO, run_cython

    source, module, target = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    folder = target.parent
    copied = folder / source.name
    shutil.copyfile(source, copied)
    extension = Extension(
        module,
        [str(copied)],
        include_dirs=sorted({str(header.parent) for header in PACKAGE.rglob("*.h")}),
        define_macros=[INLINE_ALL],
        extra_compile_args=[*COMPILE_ARGS, *REPLAY_ARGS, *WITHOUT_DEBUG_INFO],
    )
    shared = same_cython()
    extension.sources, extension.depends = run_cython(extension, shared=shared, include_path=[str(PACKAGE.parent)])
    command = build_ext(Distribution({"ext_modules": [extension]}))
    command.inplace, command.build_temp, command.build_lib = False, str(folder), str(folder / "lib")
    command.ensure_finalized()
    command.run()
    Path(command.get_ext_fullpath(module)).replace(target)


if __name__ == "__main__":
    del sys.path[0]  # this folder's module names are not for import without their package
    sys.path.append(str(PACKAGE.parent))
    from buddysim.base.boundary import run_program

    sys.exit(run_program(main))

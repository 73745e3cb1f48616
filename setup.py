"""The extensions and their flags; everything else is in pyproject.toml.

Environment: BUDDYSIM_MARCH=native compiles for this machine; BUDDYSIM_BOUNDSCHECK=1 checks every index;
BUDDYSIM_SANITIZE=1 builds with address and undefined-behaviour sanitizers; BUDDYSIM_ANNOTATE=1 writes Cython's
annotated HTML to build/; BUDDYSIM_PROGRESS=1 names each extension as it is compiled. BUDDYSIM_COMPILE=later leaves the
extensions to a `build_ext --inplace` that follows: an editable install would compile all of them for itself, unseen.
"""

import os
import shutil
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from buddysim.base.build_flags import COMPILE_ARGS, INLINE_ALL, REPLAY_ARGS, directives  # noqa: E402

march = os.environ.get("BUDDYSIM_MARCH", "")
boundscheck = bool(os.environ.get("BUDDYSIM_BOUNDSCHECK"))
progress = bool(os.environ.get("BUDDYSIM_PROGRESS"))
annotate = bool(os.environ.get("BUDDYSIM_ANNOTATE"))
later = os.environ.get("BUDDYSIM_COMPILE") == "later"

compile_args = list(COMPILE_ARGS)
link_args: list[str] = []
if march:
    compile_args.append(f"-march={march}")
if os.environ.get("BUDDYSIM_SANITIZE"):
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-fno-omit-frame-pointer"]
    compile_args += sanitize
    link_args += sanitize

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
        extra_compile_args=[*compile_args, *(REPLAY_ARGS if REPLAY in source.parents else [])],
        extra_link_args=link_args,
    )
    for source in sources
]

#: The traces that come with an installed package, and what names the others (buddysim/trace/shipped.py).
SHIPPED = ("MANIFEST.toml", "bitonic-sort.bin", "kv-cache.bin")


class BuildWithTrace(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "buddysim", "trace", "shipped")
            target.mkdir(parents=True, exist_ok=True)
            for name in SHIPPED:
                shutil.copyfile(ROOT / "traces" / name, target / name)


class BuildWithProgress(build_ext):
    def build_extension(self, ext: Extension) -> None:
        if progress and newer_group([*ext.sources, *ext.depends], self.get_ext_fullpath(ext.name), "newer"):
            print(f"  compiling {ext.name}", flush=True)
        super().build_extension(ext)


setup(
    cmdclass={"build_py": BuildWithTrace, "build_ext": BuildWithProgress},
    ext_modules=cythonize(
        [] if later else extensions,
        compiler_directives=dict(directives(boundscheck)),
        build_dir="build/cython-boundscheck" if boundscheck else "build/cython",
        annotate=annotate,
        quiet=True,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)

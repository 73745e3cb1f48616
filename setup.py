"""The extensions and their flags; everything else is in pyproject.toml.

Environment: BUDDYSIM_MARCH=native compiles for this machine; BUDDYSIM_BOUNDSCHECK=1 checks every index;
BUDDYSIM_SANITIZE=1 builds with address and undefined-behaviour sanitizers; BUDDYSIM_ANNOTATE=1 writes Cython's
annotated HTML to build/; BUDDYSIM_PROGRESS=1 names each extension as it is compiled. BUDDYSIM_COMPILE=later leaves the
extensions to a `build_ext --inplace` that runs next to it: an editable install would compile all of them too, unseen.

The same tree gives the same bytes of archive and wheel: all files have the date SOURCE_DATE_EPOCH, or 1980.
"""

import gzip
import os
import shutil
import sys
import tarfile
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy
from Cython.Compiler.Errors import CompileError as CythonError
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import CompileError
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from buddysim.base.build_flags import (  # noqa: E402
    COMPILE_ARGS,
    INLINE_ALL,
    REPLAY_ARGS,
    SHARED_MODULE,
    WITHOUT_DEBUG_INFO,
    WITHOUT_SYMBOLS,
    run_cython,
)

DATE = int(os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800"))  # of the wheel's files, too: zip begins in 1980
march = os.environ.get("BUDDYSIM_MARCH", "")
boundscheck = bool(os.environ.get("BUDDYSIM_BOUNDSCHECK"))
sanitized = bool(os.environ.get("BUDDYSIM_SANITIZE"))
progress = bool(os.environ.get("BUDDYSIM_PROGRESS"))
annotate = bool(os.environ.get("BUDDYSIM_ANNOTATE"))
later = os.environ.get("BUDDYSIM_COMPILE") == "later"
processes = os.cpu_count() or 1

compile_args = list(COMPILE_ARGS)
link_args: list[str] = []
if march:
    compile_args.append(f"-march={march}")
if sanitized:
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-fno-omit-frame-pointer"]
    compile_args += sanitize
    link_args += sanitize
elif not boundscheck:
    compile_args += WITHOUT_DEBUG_INFO
    link_args += WITHOUT_SYMBOLS

REPLAY = Path("buddysim", "replay")
HEADERS = [path for path in Path("buddysim").rglob("*.h") if path.parts[1] != "capture"]
C_FILES = Path("build", "cython-boundscheck" if boundscheck else "cython")
FLAGS = ["setup.py", str(Path("buddysim", "base", "build_flags.py"))]


def extension(name: str, source: Path) -> Extension:
    """Return an extension of the package with the flags of its folder."""
    return Extension(
        name,
        [str(source)],
        include_dirs=[numpy.get_include(), *sorted({str(header.parent) for header in HEADERS})],
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"),
            *([INLINE_ALL] if REPLAY in source.parents else []),
        ],
        extra_compile_args=[*compile_args, *(REPLAY_ARGS if REPLAY in source.parents else [])],
        extra_link_args=link_args,
    )


sources = [source.relative_to(ROOT) for source in (ROOT / "buddysim").rglob("*.pyx")]
# The largest ones first, so that no processor is left with one of them at the end.
sources.sort(key=lambda source: (-(ROOT / source).stat().st_size, source))
extensions = [
    extension(SHARED_MODULE, Path(*SHARED_MODULE.split(".")).with_suffix(".c")),  # Cython writes its source
    *(extension(".".join(source.with_suffix("").parts), source) for source in sources),
]

#: What comes with an installed package (buddysim/trace/shipped.py): the traces of the documents, the names of all.
SHIPPED = (
    "MANIFEST.toml", "bfs-volta.bin", "fdtd2048.bin", "jacobi2d.bin", "kv-cache.bin", "lud256.bin", "nw2048.bin",
    "vectoradd-turing.bin",
)  # fmt: skip


class BuildWithTraces(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "buddysim", "trace", "shipped")
            target.mkdir(parents=True, exist_ok=True)
            for name in SHIPPED:
                shutil.copyfile(ROOT / "traces" / name, target / name)


class Build(build_ext):
    """Takes each extension through Cython and the C compiler by itself, several at a time."""

    def build_extensions(self) -> None:
        self.count, self.lock = 0, threading.Lock()
        # Here, as Cython would copy them while a compiler reads them.
        for header in HEADERS:
            copy = C_FILES / header
            if not copy.exists() or copy.stat().st_mtime < header.stat().st_mtime:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(header, copy)
        with ProcessPoolExecutor(processes, get_context("fork")) as self.cython:
            self.cython.submit(os.getpid).result()  # forks all of them before there are threads
            super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        c_file = C_FILES / Path(ext.sources[0]).with_suffix(".c")
        if newer_group(FLAGS, c_file, "newer"):
            c_file.unlink(missing_ok=True)  # Cython compares it with its sources alone
        # Cython runs in a process, as it does not work in threads; `parallel` calls this in a thread, which waits.
        try:
            ext.sources, ext.depends = self.cython.submit(run_cython, ext, str(C_FILES), boundscheck, annotate).result()
        except CythonError as error:  # Cython has printed what and where
            raise CompileError(f"Cython: {error}") from None
        used = {Path(path).parent for path in ext.depends}
        ext.depends += [str(header) for header in HEADERS if header.parent in used]  # a header may include another
        ext.depends += FLAGS
        if progress and newer_group([*ext.sources, *ext.depends], self.get_ext_fullpath(ext.name), "newer"):
            with self.lock:
                self.count += 1
                print(f"  compiling {ext.name} ({self.count} of {len(self.extensions)})", flush=True)
        super().build_extension(ext)


def undated(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out of an archive what the tree doesn't say: when, and by whom."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = DATE, 0, 0, "", ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


class UndatedArchive(sdist):
    def make_archive(self, base_name, format, root_dir=None, base_dir=None, owner=None, group=None) -> str:  # type: ignore[no-untyped-def, override]
        path = f"{base_name}.tar.gz"
        with (
            Path(path).open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=DATE) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(base_dir, filter=undated)
        return path


setup(
    cmdclass={"build_py": BuildWithTraces, "build_ext": Build, "sdist": UndatedArchive},
    ext_modules=[] if later else extensions,
    options={"build_ext": {"parallel": processes}},
)

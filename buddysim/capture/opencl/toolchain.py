"""What a capture needs of this machine, and the two libraries that it compiles at first use."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError

HERE = Path(__file__).parent
VENDORS = Path("/etc/OpenCL/vendors")
LLVM = 15  # PoCL of Debian 12 is built with it: its programs are bitcode of this version
_LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")


@dataclass(frozen=True)
class Toolchain:
    """Programs and libraries of this machine.

    Parameters
    ----------
    clang : the compiler of kernels
    compiler : of C++, for the capture's own two libraries
    llvm_flags : include folders of LLVM's headers
    pocl : PoCL's driver
    """

    clang: str
    compiler: str
    llvm_flags: tuple[str, ...]
    pocl: str


def cache_folder() -> Path:
    """Where compiled things are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "buddysim" / "opencl"


def find_toolchain() -> Toolchain:
    """Find all that is needed.

    Raises
    ------
    BuddysimError
        names the Debian packages of all that is missing
    """
    missing: list[str] = []

    def program(names: Sequence[str], package: str) -> str:
        for name in names:
            if found := shutil.which(name):
                return found
        missing.append(package)
        return ""

    clang = program([f"clang-{LLVM}"], f"clang-{LLVM}")
    compiler = program(["g++"], "g++")
    config = program([f"llvm-config-{LLVM}"], f"llvm-{LLVM}-dev")
    flags: tuple[str, ...] = ()
    if config:
        flags = tuple(_output([config, "--cppflags"]).split())
        include = Path(_output([config, "--includedir"]).strip())
        if not (include / "llvm" / "Passes" / "PassPlugin.h").is_file():
            missing.append(f"llvm-{LLVM}-dev")
    if not Path("/usr/include/CL/cl_icd.h").is_file():
        missing.append("opencl-headers")
    pocl = _find_pocl()
    if not pocl:
        missing.append("pocl-opencl-icd")
    if missing:
        raise BuddysimError(
            f"capture opencl: missing on this machine; to install it: apt install {' '.join(dict.fromkeys(missing))}"
        )
    return Toolchain(clang, compiler, flags, pocl)


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _find_pocl() -> str:
    for file in sorted(VENDORS.glob("*.icd")) if VENDORS.is_dir() else []:
        library = file.read_text(errors="replace").strip()
        if "pocl" not in library:
            continue
        if library.startswith("/"):
            return library if Path(library).is_file() else ""
        for folder in _LIBRARY_FOLDERS:
            if (Path(folder) / library).is_file():
                return str(Path(folder) / library)
    return ""


def pass_plugin(toolchain: Toolchain) -> Path:
    """The compiler pass, as a plugin of clang."""
    sources = [*sorted((HERE / "llvm_pass").glob("*.cpp"))]
    headers = [*sorted((HERE / "llvm_pass").glob("*.h")), HERE / "table.h"]
    command = [toolchain.compiler, "-std=c++17", "-O1", "-fPIC", "-shared", "-fno-rtti", *toolchain.llvm_flags]
    return built("pass", command, sources, headers, [])


def runtime_library(toolchain: Toolchain) -> Path:
    """What runs kernels in the program's process."""
    sources = [*sorted((HERE / "runtime").glob("*.cpp"))]
    headers = [*sorted((HERE / "runtime").glob("*.h")), HERE / "table.h"]
    command = [toolchain.compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    return built("runtime", command, sources, headers, ["-ldl", "-pthread"])


def hooks_object(toolchain: Toolchain) -> Path:
    """What is linked to every program's kernels."""
    return built("hooks", [toolchain.clang, "-O2", "-fPIC", "-c"], [HERE / "hooks.c"], [], [], ".o")


def built(
    name: str,
    command: Sequence[str],
    sources: Sequence[Path],
    headers: Sequence[Path],
    libraries: Sequence[str],
    suffix: str = ".so",
) -> Path:
    """The result of a compilation, from the cache if the same was compiled before."""
    digest = hashlib.sha256("\0".join([*command, *libraries]).encode())
    for file in [*sources, *headers]:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    target = cache_folder() / f"{name}-{digest.hexdigest()[:24]}{suffix}"
    if not target.is_file():
        compile_into(target, [*command, *map(str, sources), *libraries], f"the capture's {name}")
    return target


def compile_into(target: Path, command: Sequence[str], what: str) -> None:
    """Run a compiler with ``-o`` a new file, which then gets its name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / f"made{target.suffix}"
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
        if done.returncode or not made.is_file():
            lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            reason = lines[0].strip() if lines else f"exit code {done.returncode}"
            raise BuddysimError(f"capture opencl: {what} could not be compiled: {reason}")
        made.replace(target)

"""Programs and libraries that a capture needs, and what it compiles of its own at first use."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.capture.compilation import compiled_sources
from buddysim.capture.opencl.generated_headers import headers

HERE = Path(__file__).parent
CACHE = "opencl"  # folder of what is compiled, in the user's cache
VENDORS = Path("/etc/OpenCL/vendors")
LLVM = 15  # PoCL of Debian 12 is built with it: its programs are bitcode of this version
_LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")


@dataclass(frozen=True)
class Toolchain:
    """Programs and libraries of the computer that captures.

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
            if path := shutil.which(name):
                return path
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
    options = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fno-rtti", *toolchain.llvm_flags]
    return _compile_folder("llvm_pass", "pass", [toolchain.compiler, *options], [])


def runtime_library(toolchain: Toolchain) -> Path:
    """The library that runs kernels in the program's process."""
    options = ["-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    return _compile_folder("runtime", "runtime", [toolchain.compiler, *options], ["-ldl", "-pthread"])


def hooks_object(toolchain: Toolchain) -> Path:
    """The object that is linked to every program's kernels."""
    command = [toolchain.clang, "-O2", "-fPIC", "-c"]
    return compiled_sources(f"{CACHE}/hooks", ".o", command, [HERE / "hooks.c"], _failure("hooks"))


def _compile_folder(folder: str, name: str, command: Sequence[str], libraries: Sequence[str]) -> Path:
    return compiled_sources(
        f"{CACHE}/{name}",
        ".so",
        command,
        sorted((HERE / folder).glob("*.cpp")),
        _failure(name),
        headers=[*sorted((HERE / folder).glob("*.h")), HERE / "table.h"],
        libraries=libraries,
        generated=headers(),
        slow=True,
    )


def _failure(name: str) -> str:
    return f"capture opencl: the capture's {name} could not be compiled"

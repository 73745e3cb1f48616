#!/usr/bin/env python3
"""Captures the OpenCL versions of the measured programs for ``python -m buddysim validate kernels --captures FOLDER``.

    git clone https://github.com/ChrisCummins/phd
    python tools/capture_gpu_benchmarks.py phd FOLDER [PROGRAM ...]

Each program (``tools/gpu_benchmarks.toml``) is copied from the checkout's last commit, changed, built, and run under
``capture opencl --report-as-gpu --emulate-gpu-compiler``, which writes ``FOLDER/PROGRAM.bin``. Requirements are those
of captures (docs/how-to/capture-opencl.md), gcc and g++.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from buddysim.base.parsers.tar import unpack
from buddysim.base.textfile import parse_toml

HERE = Path(__file__).parent
COLLECTION = "datasets/benchmarks/gpgpu"
#: Names in the collection's wrapper of OpenCL.
WRAPPED = {
    "BUFFER": "clCreateBuffer",
    "CREATE_COMMAND_QUEUE": "clCreateCommandQueue",
    "CREATE_CONTEXT": "clCreateContext",
    "CREATE_CONTEXT_FROM_TYPE": "clCreateContextFromType",
    "GET_KERNEL_WORK_GROUP_INFO": "clGetKernelWorkGroupInfo",
    "KERNEL": "clCreateKernel",
    "MAP_BUFFER": "clEnqueueMapBuffer",
    "ND_RANGE_KERNEL": "clEnqueueNDRangeKernel",
    "PROGRAM": "clBuildProgram",
    "PROGRAM_WITH_SOURCE": "clCreateProgramWithSource",
    "READ_BUFFER": "clEnqueueReadBuffer",
    "SET_KERNEL_ARG": "clSetKernelArg",
    "WRITE_BUFFER": "clEnqueueWriteBuffer",
}
SEED = 1
NODES = 1_000_000
BLOCK = 32  # lanes of a warp
#: Warps of the measured graph's first frontiers, from its counters: stores of each step's second kernel, 4 per warp.
FRONTIERS = (3, 22, 114, 689)


def main() -> int:
    """Capture the named programs, or all."""
    programs = parse_toml((HERE / "gpu_benchmarks.toml").read_text(encoding="utf-8"), "gpu_benchmarks.toml")["program"]
    names = [program["name"] for program in programs]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="checkout of github.com/ChrisCummins/phd, or its git directory")
    parser.add_argument("folder", type=Path, help="output folder of the captures")
    parser.add_argument("program", nargs="*", choices=[[], *names], help="programs to capture (default: all)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        if not arguments.program or program["name"] in arguments.program:
            with TemporaryDirectory() as folder:
                capture(
                    program, arguments.checkout, Path(folder), arguments.folder.resolve() / f"{program['name']}.bin"
                )
    return 0


def capture(program: dict, checkout: Path, root: Path, target: Path) -> None:
    """Copy, change, build and capture one program."""
    suite = program["folder"].split("/")[0]
    copy_out(checkout, f"{suite}/{'common' if suite.startswith('poly') else program['folder'].split('/', 1)[1]}", root)
    copy_out(checkout, program["folder"].removesuffix("/ocl"), root)
    folder = root / program["folder"]
    for edit in program.get("edits", ()):
        path = folder / edit["file"]
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        if edit["old"] not in text:
            sys.exit(f"{program['name']}: {edit['file']}: {edit['old']!r}: no such text")
        path.write_text(text.replace(edit["old"], edit["new"]), encoding="utf-8", errors="surrogateescape")
    wrapper = root / "wrapper"
    wrapper.mkdir()
    names = "".join(f"#define CECL_{name} {function}\n" for name, function in WRAPPED.items())
    (wrapper / "libcecl.h").write_text(f"#pragma once\n#include <CL/cl.h>\n{names}", encoding="utf-8")
    if "data" in program:
        GENERATORS[program["data"]](folder)
    compiler, *rest = shlex.split(program["build"])
    flags = ("-O2", "-w", "-DCL_TARGET_OPENCL_VERSION=120", "-DCL_USE_DEPRECATED_OPENCL_1_0_APIS", f"-I{wrapper}")
    loose = ("-std=c++14", "-fpermissive") if compiler == "g++" else ()
    run([compiler, *flags, *loose, *rest, "-o", "program", "-lOpenCL", "-lm"], folder)
    command = [
        sys.executable,
        "-m",
        "buddysim",
        "capture",
        "opencl",
        "--report-as-gpu",
        "--emulate-gpu-compiler",
        "--snapshots",
        "0",
    ]
    run([*command, "-o", str(target), "--", "./program", *program.get("arguments", ())], folder)


def copy_out(checkout: Path, folder: str, root: Path) -> None:
    """Copy a folder of the collection from the checkout's last commit."""
    command = ["git", "-C", str(checkout), "archive", "HEAD", f"{COLLECTION}/{folder}"]
    with TemporaryDirectory() as temporary:
        archive, unpacked = Path(temporary) / "folder.tar", Path(temporary) / "unpacked"
        archive.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
        unpack(archive, unpacked)
        for path in (unpacked / COLLECTION).rglob("*"):
            name = path.relative_to(unpacked / COLLECTION)
            if path.is_file() and name.parts[0] != "datasets":
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(path.read_bytes())


def run(command: list[str], folder: Path) -> None:
    """Run a command in a folder; print its output if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        sys.exit(
            f"{' '.join(command[:6])} ...: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    print(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"{command[0]}: done", flush=True)


def write_hotspot(folder: Path) -> None:
    """Write temperatures and powers: the counters don't depend on them."""
    random = np.random.default_rng(SEED)
    np.savetxt(folder / "temp", random.uniform(320, 345, 512 * 512), fmt="%.6f")
    np.savetxt(folder / "power", random.uniform(0, 0.005, 512 * 512), fmt="%.6f")


def write_tree(folder: Path) -> None:
    """Write a million ascending keys, and the two commands of Rodinia."""
    keys = np.arange(NODES)
    (folder / "keys").write_text(f"{NODES}\n" + "\n".join(map(str, keys)) + "\n", encoding="ascii")
    (folder / "commands").write_text("j 6000 3000\nk 10000\n", encoding="ascii")


def write_graph(folder: Path) -> None:
    """Write a graph by the rules of Rodinia's generator: two to four random edges per node, in both directions.

    Node 0, the start of the search, is the node whose first frontiers are nearest to those of the counters.
    """
    random = np.random.default_rng(SEED)
    n_edges = random.integers(2, 5, NODES)
    begin = np.repeat(np.arange(NODES), n_edges)
    end = random.integers(0, NODES, len(begin))
    source, target = np.concatenate([begin, end]), np.concatenate([end, begin])
    order = np.argsort(source, kind="stable")
    target = target[order].astype(np.int64)
    degree = np.bincount(source, minlength=NODES)
    first = np.concatenate([[0], np.cumsum(degree)])
    candidates = np.flatnonzero(degree == FRONTIERS[0])[:4000]
    root = min(candidates, key=lambda node: distance(node, first, target))
    swap = np.arange(NODES)
    swap[[0, root]] = root, 0
    lists = [swap[target[first[node] : first[node + 1]]] for node in swap]
    degrees = np.array([len(one) for one in lists])
    starts = np.concatenate([[0], np.cumsum(degrees)[:-1]])
    edges = np.concatenate(lists)
    with (folder / "graph").open("w", encoding="ascii") as file:
        file.write(f"{NODES}\n")
        np.savetxt(file, np.stack([starts, degrees], axis=1), fmt="%d")
        file.write(f"\n0\n\n{len(edges)}\n")
        np.savetxt(file, np.stack([edges, random.integers(1, 11, len(edges))], axis=1), fmt="%d")


def distance(root: int, first: np.ndarray, target: np.ndarray) -> float:
    """Return how far the first frontiers from a node are from the measured ones, in warps."""
    visited, frontier, total = {int(root)}, [int(root)], 0.0
    for warps in FRONTIERS:
        reached = {int(n) for node in frontier for n in target[first[node] : first[node + 1]]} - visited
        visited |= reached
        frontier = sorted(reached)
        n_warps = len({node // BLOCK for node in frontier})
        total += abs(n_warps / warps - 1)
        if total > 1:
            break
    return total


GENERATORS: dict[str, Callable[[Path], None]] = {"hotspot": write_hotspot, "b+tree": write_tree, "bfs": write_graph}

if __name__ == "__main__":
    sys.exit(main())

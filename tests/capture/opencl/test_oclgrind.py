"""Warp operations of a capture equal those of Oclgrind, which interprets a program work-item by work-item."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buddysim.capture.compilation import compiled_sources
from buddysim.trace import open_trace
from buddysim.trace.records import OP_BARRIER, OP_STORE
from tests.capture.opencl.kernels import JOBS
from tests.capture.opencl.running import HERE, captured, needs_opencl, plain
from tests.reference.capture.opencl.ref_warp import (
    RefAccessSite,
    RefBasicBlock,
    RefControlFlow,
    RefLane,
    joins,
    regroup,
)
from tests.reference.trace.ref_coalesce import coalesce_op

QUICK = ("histogram", "barriers_in_loops", "two_branches")
DRIVER = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
HEADER = Path("/usr/include/oclgrind/Plugin.h")
Operation = tuple[int, int, tuple[int, ...]]


@pytest.fixture(scope="session")
def plugin() -> Path:
    needs_opencl()
    config = shutil.which("llvm-config-14")
    if not DRIVER.is_file() or config is None or not HEADER.is_file():
        pytest.skip("Oclgrind or what its plugins need is missing: apt install oclgrind liboclgrind-dev llvm-14-dev")

    def flags(what: str) -> list[str]:
        return subprocess.run([config, what], capture_output=True, text=True, check=True).stdout.split()

    command = ["g++", "-O1", "-std=c++17", "-fPIC", "-shared", "-fno-rtti"]
    command += ["-DLLVM_DISABLE_ABI_BREAKING_CHECKS_ENFORCING=1", *flags("--cppflags")]
    return compiled_sources(
        "oclgrind_plugin",
        ".so",
        command,
        [HERE / "oclgrind_plugin.cpp"],
        "the plugin of Oclgrind",
        headers=[HEADER],
        libraries=[*flags("--ldflags"), "-lLLVM-14", "-loclgrind"],
    )


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def of_oclgrind(log: Path) -> tuple[list[int], dict[tuple[int, int], list[Operation]]]:
    """Return the addresses of the buffers, and the operations of each (work-group, warp)."""
    buffers: list[int] = []
    kernel = RefControlFlow([], [])
    items: dict[tuple[int, int], RefLane] = {}
    for line in log.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "buffer":
            buffers.append(numbers(rest)[0])
        elif word == "block":
            targets, _, sites = rest.partition("|")
            fields = numbers(sites)
            mine = [RefAccessSite(kind, size) for kind, size in zip(fields[::2], fields[1::2], strict=True)]
            first = len(kernel.sites)
            kernel.sites += mine
            kernel.blocks.append(RefBasicBlock(numbers(targets), list(range(first, first + len(mine))), logged=True))
        elif word == "item":
            position, blocks, accesses = rest.split("|")
            group, local = numbers(position)
            items[group, local] = RefLane(numbers(blocks)[1:], numbers(accesses))
    for block, join in zip(kernel.blocks, joins([block.targets for block in kernel.blocks]), strict=True):
        block.join = join
    warps: dict[tuple[int, int], list[RefLane]] = {}
    for (group, local), lane in sorted(items.items()):
        warps.setdefault((group, local // 32), []).append(lane)
    return buffers, {warp: operations(kernel, lanes) for warp, lanes in warps.items()}


def operations(kernel: RefControlFlow, lanes: list[RefLane]) -> list[Operation]:
    ops, _ = regroup(kernel, lanes, range(1, 1 << 60))
    return [
        (
            op.kind,
            op.bytes,
            () if op.kind == OP_BARRIER else tuple(coalesce_op(op.addresses, op.bytes, op.kind == OP_STORE)),
        )
        for op in ops
    ]


def of_capture(path: Path) -> tuple[list[int], dict[tuple[int, int], list[Operation]]]:
    result: dict[tuple[int, int], list[Operation]] = {}
    with open_trace(path) as trace:
        for ref in trace.kernels[0].chunks:
            chunk = trace.decode_chunk(ref)
            for block in chunk.blocks:
                for warp in chunk.warps[block["first_warp"] :][: block["n_warps"]]:
                    ops = chunk.ops[warp["first_op"] :][: warp["n_ops"]]
                    result[int(block["block"]), int(warp["warp"])] = [operation(op, chunk.lines) for op in ops]
        return [allocation.base for allocation in trace.allocations], result


def operation(op: Any, lines: np.ndarray[Any, Any]) -> Operation:
    first = int(op["first_line"])
    return int(op["kind"]), int(op["bytes_per_lane"]), tuple(lines[first : first + int(op["n_lines"])].tolist())


def moved(lines: tuple[int, ...], sources: list[int], targets: list[int]) -> tuple[int, ...]:
    """Return lines of buffers moved to other addresses."""
    result = []
    for line in lines:
        buffer = max((n for n, base in enumerate(sources) if base >> 7 <= line >> 8), key=lambda n: sources[n])
        result.append(line + ((targets[buffer] - sources[buffer] >> 7) << 8))
    return tuple(result)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in JOBS]
)
def test_every_warp_operation_is_oclgrinds(name: str, plugin: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {
        "OCL_ICD_VENDORS": str(DRIVER),
        "OCLGRIND_NUM_THREADS": "1",
        "OCLGRIND_PLUGINS": str(plugin),
        "OCLGRIND_WARP_LOG": str(log),
    }
    printed = plain(JOBS[name], tmp_path, **environment)
    output, done = captured(JOBS[name], tmp_path, "--snapshots", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
    reference_bases, reference = of_oclgrind(log)
    capture_bases, captured_ops = of_capture(output)
    assert captured_ops.keys() == reference.keys()
    for warp, expected in reference.items():
        expected_ops = [(kind, size, moved(lines, reference_bases, capture_bases)) for kind, size, lines in expected]
        assert captured_ops[warp] == expected_ops, warp

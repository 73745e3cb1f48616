"""From a launch's programs to the records of its thread blocks: the lines of each warp's accesses, with their times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from buddysim.base.errors import BuddysimError
from buddysim.capture.triton_kernels.access_lanes import AccessLanes
from buddysim.capture.triton_kernels.compiled_kernel import CompiledKernel
from buddysim.capture.triton_kernels.device_memory import TensorMemory
from buddysim.capture.triton_kernels.expand import expand
from buddysim.capture.triton_kernels.interpretation import InterpretedProgram
from buddysim.capture.triton_kernels.layouts import LANES
from buddysim.capture.triton_kernels.path import NOTHING, PathFinder, ProgramPath
from buddysim.capture.triton_kernels.ptx import Position
from buddysim.capture.triton_kernels.timing import PathTimes, WarpTimes
from buddysim.trace.blocks import Records
from buddysim.trace.records import (
    ATOMIC_CONFLICTS_SHIFT,
    BLOCK_DTYPE,
    FLAG_BYPASS_L1,
    OP_ATOMIC,
    OP_BARRIER,
    OP_LOAD,
    OP_STORE,
)

_KINDS: Final = {
    "load": OP_LOAD,
    "async_copy": OP_LOAD,
    "store": OP_STORE,
    "atomic": OP_ATOMIC,
    "tensor_load": OP_LOAD,
    "tensor_store": OP_STORE,
}
#: Lane accesses of the programs that are expanded together.
_BATCH_LANES: Final = 1 << 20


@dataclass
class AccessCounts:
    """Counts of a capture.

    Attributes
    ----------
    lane_accesses : addresses that the interpreter's programs accessed
    operations : warp operations in the trace
    dropped : accesses of the interpreter that the compiled kernel doesn't have
    outside : lane accesses outside of all tensors
    """

    lane_accesses: int = 0
    operations: int = 0
    dropped: int = 0
    outside: int = 0


@dataclass
class _KnownPath:
    path: ProgramPath
    times: PathTimes


class LaunchRecords:
    """Makes the records of one compiled kernel's launches.

    Parameters
    ----------
    kernel : compiled
    source_loops : positions of the source's loops, with their last lines
    memory : of the device, with the tensors
    architecture : of the GPU
    counts : receives counts
    """

    def __init__(
        self,
        kernel: CompiledKernel,
        source_loops: dict[Position, int],
        memory: TensorMemory,
        architecture: int,
        counts: AccessCounts,
    ) -> None:
        self._kernel = kernel
        self._finder = PathFinder(kernel, source_loops)
        self._memory = memory
        self._architecture = architecture
        self._counts = counts
        self._paths: dict[Any, _KnownPath] = {}
        self._lanes = [AccessLanes.of(access, kernel.warps) for access in kernel.accesses]

    def records(self, programs: Iterator[InterpretedProgram]) -> Iterator[Records]:
        """Yield the records of thread blocks, many at a time; of a launch that ends early, those before its end."""
        batch: list[InterpretedProgram] = []
        key: Any = None
        lanes = 0
        try:
            for program in programs:
                loops = tuple((name, tuple(counts)) for name, counts in program.loops.items())
                its_key = tuple(program.positions), loops
                if batch and (its_key != key or lanes > _BATCH_LANES):
                    complete, batch, lanes = batch, [], 0
                    yield self._batch(complete, key)
                key = its_key
                batch.append(program)
                lanes += sum(map(len, program.addresses))
        except (Exception, KeyboardInterrupt):
            if batch:
                yield self._batch(batch, key)
            raise
        if batch:
            yield self._batch(batch, key)

    def _batch(self, programs: list[InterpretedProgram], key: Any) -> Records:
        known = self._paths.get(key)
        if known is None:
            path = self._finder.find(programs[0].positions, programs[0].loops)
            known = self._paths[key] = _KnownPath(path, PathTimes(self._kernel.sass, path, self._architecture))
        path = known.path
        self._counts.dropped += path.dropped * len(programs)
        self._counts.lane_accesses += sum(
            len(addresses) if mask is None else int(np.count_nonzero(mask))
            for program in programs
            for addresses, mask in zip(program.addresses, program.masks, strict=True)
        )
        steps = [
            (access, event, group * self._lanes[access].operations + part)
            for access, event, group in zip(path.accesses, path.events, path.groups, strict=True)
            if access != NOTHING
            for part in range(self._lanes[access].operations)
        ]
        shape = len(programs), self._kernel.warps, len(steps), LANES
        addresses = np.zeros(shape, np.uint64)
        active = np.zeros(shape, np.bool_)
        expanded: dict[tuple[int, int], tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]] = {}
        for number, (access, event, group) in enumerate(steps):
            if event == NOTHING:
                continue
            if (access, event) not in expanded:
                expanded[access, event] = self._expanded(programs, access, event)
            its_addresses, its_active = expanded[access, event]
            if group < its_addresses.shape[2]:
                addresses[:, :, number] = its_addresses[:, :, group]
                active[:, :, number] = its_active[:, :, group]
        return self._assemble(programs, known, steps, addresses, active)

    def _expanded(
        self, programs: list[InterpretedProgram], access: int, event: int
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Return addresses on the GPU and active lanes of one access: arrays (programs, warps, instructions, 32)."""
        elements = self._lanes[access].elements
        flat = np.stack([program.addresses[event] for program in programs])
        if int(elements.max()) >= flat.shape[1]:
            position = self._kernel.accesses[access].layout.position
            raise BuddysimError(
                f"capture triton: {self._kernel.name}: {position}: the interpreter accessed {flat.shape[1]} elements: "
                f"expected {int(elements.max()) + 1} or more, as in the compiled kernel"
            )
        addresses = flat[:, elements]
        masks = [program.masks[event] for program in programs]
        if all(mask is None for mask in masks):
            active = np.ones(addresses.shape, np.bool_)
        else:
            active = np.stack([np.ones(flat.shape[1], np.bool_) if mask is None else mask for mask in masks])[
                :, elements
            ]
        active &= self._lanes[access].owners
        addresses, inside = self._memory.translate(addresses, active)
        if inside is not None:
            self._counts.outside += int(np.count_nonzero(active & ~inside))
            active = active & inside
        instructions = len(self._kernel.accesses[access].lines) * self._lanes[access].operations
        if instructions < elements.shape[1]:  # some whose mask is never true were removed
            unused = ~np.any(active, axis=(0, 1, 3))
            remaining = np.sort(np.argsort(unused, kind="stable")[:instructions])
            addresses, active = np.take(addresses, remaining, 2), np.take(active, remaining, 2)
        return addresses, active

    def _assemble(
        self,
        programs: list[InterpretedProgram],
        known: _KnownPath,
        steps: list[tuple[int, int, int]],
        addresses: npt.NDArray[np.uint64],
        active: npt.NDArray[np.bool_],
    ) -> Records:
        warps = self._kernel.warps
        n_warps = len(programs) * warps
        accesses = self._kernel.accesses
        kinds = np.array([_KINDS[accesses[access].layout.kind] for access, _, _ in steps], np.uint8)
        widths = np.array([self._lanes[access].bytes_per_lane for access, _, _ in steps], np.uint8)
        masks = np.packbits(active, axis=-1, bitorder="little").view(np.uint32).reshape(n_warps, len(steps))
        lines, n_lines, codes = expand(
            addresses.reshape(-1, LANES), masks.reshape(-1), np.tile(kinds, n_warps), np.tile(widths, n_warps)
        )
        takes_part = masks != 0
        patterns, pattern_of = np.unique(takes_part, axis=0, return_inverse=True)
        parts = [self._lanes[access].operations for access in known.path.accesses if access != NOTHING]
        times = [_with_parts(known.times, pattern, parts) for pattern in patterns]
        pattern_of = pattern_of.reshape(-1)
        ops = _repeat([own for own, _ in times], pattern_of)
        records = _repeat([record for _, record in times], pattern_of)
        of_memory = ops["kind"] != OP_BARRIER
        ops["n_lines"] = 0
        ops["n_lines"][of_memory] = n_lines
        took_part = takes_part.reshape(-1)
        ops["bytes_per_lane"][of_memory] = np.tile(widths, n_warps)[took_part]
        ops["flags"][of_memory] = (ops["flags"][of_memory] & ~np.uint8(0xF8)) | (codes << ATOMIC_CONFLICTS_SHIFT)
        bypass = np.array([FLAG_BYPASS_L1 * self._bypasses(access) for access, _, _ in steps], np.uint8)
        ops["flags"][of_memory] |= np.tile(bypass, n_warps)[took_part]
        ops["first_line"] = _starts(ops["n_lines"])
        records["warp"] = np.tile(np.arange(warps), len(programs))
        records["first_op"] = _starts(records["n_ops"])
        blocks = np.zeros(len(programs), BLOCK_DTYPE)
        blocks["block"] = [program.block for program in programs]
        blocks["n_warps"] = warps
        blocks["first_warp"] = np.arange(len(programs)) * warps
        self._counts.operations += int(of_memory.sum())
        return blocks, records, ops, lines

    def _bypasses(self, access: int) -> bool:
        """Whether an operation's instructions bypass the L1: copies of tensors, and asynchronous ones of 16 B."""
        own = self._kernel.accesses[access]
        whole = own.layout.kind == "async_copy" and own.bytes_per_lane == LARGEST_LANE_BYTES
        return whole or own.layout.kind == "tensor_load"


#: Bytes that a lane moves in one instruction at most.
LARGEST_LANE_BYTES: Final = 16


def _with_parts(times: PathTimes, takes_part: npt.NDArray[np.bool_], parts: list[int]) -> WarpTimes:
    """Return a warp's times, where an instruction that moves a whole tensor is several operations.

    Parameters
    ----------
    times : of the path
    takes_part : of each operation
    parts : operations of each instruction
    """
    if not parts or max(parts) == 1:
        return times.of_warp(takes_part)
    counts = np.add.reduceat(takes_part.astype(np.int64), _starts(np.array(parts)))
    ops, warp = times.of_warp(counts > 0)
    copies = np.ones(len(ops), np.int64)
    copies[ops["kind"] != OP_BARRIER] = counts[counts > 0]
    result, record = np.repeat(ops, copies), warp.copy()
    further = np.ones(len(result), np.bool_)
    further[_starts(copies)] = False
    for name in ("gap_instructions", "critical_path_cycles", "critical_path_hops", "unit_busy_slots"):
        result[name][further] = 0
    record["n_ops"] = len(result)
    return result, record


def _repeat(parts: list[npt.NDArray[np.void]], order: npt.NDArray[Any]) -> npt.NDArray[np.void]:
    """Return the concatenation of ``parts[i]`` for each i in `order`."""
    lengths = np.array([len(part) for part in parts])[order]
    firsts = _starts(np.array([len(part) for part in parts]))[order]
    index = np.repeat(firsts - _starts(lengths), lengths) + np.arange(lengths.sum())
    result: npt.NDArray[np.void] = np.concatenate(parts)[index]
    return result


def _starts(counts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    result: npt.NDArray[np.int64] = np.cumsum(counts, dtype=np.int64) - counts
    return result

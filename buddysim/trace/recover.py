"""Recovers a trace file from the part of an interrupted capture: complete sections; an unfinished kernel is ended."""

from __future__ import annotations

import os
from dataclasses import replace

from buddysim.base.counted import counted
from buddysim.base.errors import BuddysimError
from buddysim.base.output import Output
from buddysim.trace import format as fmt
from buddysim.trace.reader import Trace, open_trace
from buddysim.trace.writer import TraceWriter

_END = "Recovered: the capture was interrupted, and the trace has only its complete sections."


def recover_trace(path: str | os.PathLike[str], output: str | os.PathLike[str]) -> str:
    """Writes the trace that an interrupted one holds.

    Parameters
    ----------
    path : what the capture left
    output : the trace file to write

    Returns
    -------
    what it holds, in words

    Raises
    ------
    BuddysimError
        where nothing is in it, or it can't be read
    """
    with open_trace(path, incomplete=True) as trace:
        if trace.format_version != fmt.FORMAT_VERSION:
            raise BuddysimError(
                f"{os.fspath(path)}: of format version {trace.format_version}: expected {fmt.FORMAT_VERSION}, "
                "which this program writes"
            )
        if not trace.allocations and not trace.kernels:
            raise BuddysimError(f"{os.fspath(path)}: nothing to recover: it has neither an allocation nor a kernel")
        provenance = replace(trace.provenance, assumptions=trace.provenance.assumptions | {"end": _END})
        with Output(output, [path]) as whole, TraceWriter(whole, provenance) as writer:
            unfinished = _unfinished_values(trace)
            for row, kind in enumerate(trace.file.index["type"]):
                if kind != fmt.PROVENANCE and row not in unfinished:
                    writer.copy_section(trace.file, row)
            if trace.kernels and not trace.kernels[-1].complete:
                writer.end_copied_kernel(trace.kernels[-1])
        return (
            f"{counted(len(trace.kernels), 'kernel')}, {counted(len(trace.allocations), 'allocation')}, "
            f"{counted(len(trace.snapshots), 'snapshot')}" + ("" if trace.interrupted else "; it was whole")
        )


def _unfinished_values(trace: Trace) -> set[int]:
    """The rows of contents and size maps of which only a part is there."""
    types = trace.file.index["type"]
    values = {row for row, kind in enumerate(types) if kind in (fmt.CONTENTS, fmt.SIZE_MAP)}
    whole = {row for snapshot in trace.snapshots for contents in snapshot.contents for row in contents.rows}
    return values - whole - {row for size_map in trace.size_maps for row in size_map.rows}

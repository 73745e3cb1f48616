"""Recovers a trace file from the spool folder of a killed capture of a training script."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np

from buddysim.base.counted import counted
from buddysim.base.errors import BuddysimError
from buddysim.base.memory_pool import PoolExhausted
from buddysim.base.output import INCOMPLETE, Output, check_outputs, write_bytes
from buddysim.capture.torch.access.graph_accesses import GraphKernels
from buddysim.capture.torch.assemble import assemble
from buddysim.capture.torch.spool import Spool
from buddysim.formats.operator_graph import OperatorGraph
from buddysim.importers.verify_output import verify_output

_MAX_SNAPSHOTS = 1000
#: Limits of memory instructions: of a graph's kernels; of a thread block, whose addresses take 256 MiB.
_MAX_INSTRUCTIONS = 2**30
_MAX_BLOCK_INSTRUCTIONS = 2**20
#: Exceptions of kernel models for impossible tensors or arguments of an operator.
_NO_SUCH_OPERATOR = (ValueError, IndexError, KeyError, TypeError, ArithmeticError)


def recover_folder(folder: Path, output: Path) -> str:
    """Write the trace from the contents of a spool, and its operator graph next to it.

    Parameters
    ----------
    folder : ``OUT.bin.incomplete``
    output : the trace file to write

    Returns
    -------
    str, a description of its contents

    Raises
    ------
    BuddysimError
            no spool, an impossible graph, or too large kernels
    """
    spool = Spool(folder)
    if not folder.name.endswith(INCOMPLETE) or not spool.is_one:
        raise BuddysimError(f"{folder}: not what a capture of a training left: expected OUT.bin{INCOMPLETE}")
    files = [path for path in folder.rglob("*") if path.is_file()]
    graph_output = output.with_suffix(".graph.json") if (folder / "graph.json").exists() else None
    check_outputs([output, graph_output], files)
    command = shlex.join(["buddysim", *sys.argv[1:]])
    source = folder.name.removesuffix(INCOMPLETE)
    graph = spool.graph()
    with Output(output, files) as part:
        try:
            with np.errstate(all="raise"):
                if graph is not None:
                    _check_kernels(graph, folder)
                summary = assemble(
                    spool, part, _MAX_SNAPSHOTS, source, command, "Recovered: the capture was interrupted."
                )
        except PoolExhausted as error:
            raise BuddysimError(f"{folder}: its storages don't fit the addresses of a GPU: {error}") from None
        except _NO_SUCH_OPERATOR as error:
            raise BuddysimError(
                f"{folder / 'graph.json'}: an operator has tensors or arguments that it can't have: {error}"
            ) from None
        verify_output(folder, part.part)
    if graph is not None and graph_output is not None:
        write_bytes(graph_output, graph.to_json(), files)
    return (
        f"{counted(summary.kernels, 'kernel')}, {counted(summary.allocations, 'allocation')}, "
        f"{counted(summary.snapshots, 'snapshot')}"
    )


def _check_kernels(graph: OperatorGraph, folder: Path) -> None:
    """Refuse a graph whose kernels exceed the limits: its shapes come from an untrusted file."""
    kernels = GraphKernels(graph)
    for limit, instructions, what in (
        (_MAX_INSTRUCTIONS, kernels.instructions, "the kernels of its graph have"),
        (_MAX_BLOCK_INSTRUCTIONS, kernels.of_a_block, "a thread block of its graph's kernels has"),
    ):
        if instructions > limit:
            raise BuddysimError(f"{folder}: {what} about {instructions} memory instructions: expected at most {limit}")

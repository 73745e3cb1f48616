"""What a killed capture of a training script left: the folder of its spool, as a trace file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.output import INCOMPLETE, write_bytes
from buddysim.capture.torch.assemble import assemble
from buddysim.capture.torch.spool import Spool

_MOST_SNAPSHOTS = 1000


def salvage_folder(folder: Path, output: Path) -> str:
    """Writes the trace of everything that a spool holds, and its operator graph next to it.

    Parameters
    ----------
    folder : ``OUT.bin.incomplete``
    output : the trace file to write

    Returns
    -------
    what it holds, in words

    Raises
    ------
    BuddysimError
        where it is no spool
    """
    spool = Spool(folder)
    if not folder.name.endswith(INCOMPLETE) or not spool.is_one:
        raise BuddysimError(f"{folder}: not what a capture of a training left: expected OUT.bin{INCOMPLETE}")
    command = shlex.join(["buddysim", *sys.argv[1:]])
    source = folder.name.removesuffix(INCOMPLETE)
    summary = assemble(spool, output, _MOST_SNAPSHOTS, source, command, "salvaged: the capture was interrupted")
    graph = folder / "graph.json"
    if graph.exists():
        write_bytes(output.with_suffix(".graph.json"), graph.read_bytes())
    return f"{summary.kernels} kernels, {summary.allocations} allocations, {summary.snapshots} snapshots"

"""Whether this computer has the memory that a run's allocations may take."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.base.errors import BuddysimError
from buddysim.base.host_memory import memory_available
from buddysim.replay.address_space import AddressSpace
from buddysim.replay.lazy_allocations import LARGE_ENTRIES, SEGMENT_ENTRIES
from buddysim.trace import Kernel, Trace


def check_host_memory(trace: Trace, layout: AddressSpace, kernels: Sequence[Kernel]) -> None:
    """Refuses a run whose entries may take more memory than there is: a byte each, and 4 B for each 64 of them.

    Large allocations count with as many pieces as lines may touch.

    Parameters
    ----------
    trace : for messages
    layout : where its allocations lie
    kernels : those that run

    Raises
    ------
    BuddysimError
        with how much it may take, and how much there is
    """
    touched = SEGMENT_ENTRIES * (sum(kernel.line_accesses for kernel in kernels) + 2 * len(layout.placed))
    whole = sum(
        entries for placed in layout.placed if (entries := placed.end_entry - placed.first_entry) < LARGE_ENTRIES
    )
    needed = min(layout.n_entries, touched + whole) * 17 // 16
    available = memory_available()
    if needed > available:
        raise BuddysimError(
            f"{trace.path}: its allocations may take {needed} B of this computer's memory: {available} B are available"
        )

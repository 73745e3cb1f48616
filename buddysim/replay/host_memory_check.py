"""Check that the host has the memory that a run's allocations may need."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.base.errors import BuddysimError
from buddysim.base.host_memory import memory_available
from buddysim.replay.address_space import AddressSpace
from buddysim.replay.lazy_allocations import LARGE_ENTRIES, SEGMENT_ENTRIES
from buddysim.trace import Kernel, Trace


def check_host_memory(trace: Trace, address_space: AddressSpace, kernels: Sequence[Kernel]) -> None:
    """Refuse a run whose entries may need more host memory than is available: a byte each, and 4 B per 64 entries.

    Of large allocations, as many segments count as the run's lines may access.

    Parameters
    ----------
    trace : the trace, for messages
    address_space : entry numbers of its allocations
    kernels : the kernels that run

    Raises
    ------
    BuddysimError
        the run may need more memory than is available
    """
    in_segments = SEGMENT_ENTRIES * (sum(kernel.line_accesses for kernel in kernels) + 2 * len(address_space.ranges))
    entries = [one.allocation.entries for one in address_space.ranges]
    in_full = sum(count for count in entries if count < LARGE_ENTRIES)
    needed = min(address_space.n_entries, in_segments + in_full) * 17 // 16
    available = memory_available()
    if needed > available:
        raise BuddysimError(
            f"{trace.path}: its allocations may take {needed} B of this computer's memory: {available} B are available"
        )

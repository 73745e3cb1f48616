"""Assumed compute gaps of captures that have only memory accesses.

For comparison, counted in SASS traces of real GPUs: vectorAdd runs 9 instructions before its first access, 0 to 2
between accesses and 1 after the last, 5 per access in total; Rodinia's bfs runs 4 per access.
"""

from typing import Final

FIRST_COMPUTE_GAP: Final = 8  # before a warp's first access: index computation
COMPUTE_GAP: Final = 2  # before each further access
TAIL: Final = 1  # after the last
LOADS_IN_FLIGHT: Final = 8  # a load is used before this many further accesses have issued

GAPS_TEXT: Final = (
    f"Only accesses were captured. Compute gaps are assumed: {FIRST_COMPUTE_GAP} instructions before a warp's first "
    f"access, {COMPUTE_GAP} before each further one, {TAIL} after the last, without barriers and latencies. "
    "Compute-bound kernels are optimistic."
)
DEPENDENCIES_TEXT: Final = (
    "Assumed: the first use of a load is the first instruction that leads to the warp's next store or atomic, at the "
    f"latest {LOADS_IN_FLIGHT} accesses later or after the last access. Warps may stall earlier or later in reality."
)

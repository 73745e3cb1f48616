"""What is assumed about the instructions between the memory accesses of a capture that has only those.

For comparison, counted in SASS traces of real GPUs: vectorAdd runs 9 instructions before its first access, 0 to 2
between accesses and 1 after the last, 5 instructions per access in all; Rodinia's bfs 4 per access.
"""

from typing import Final

GAP_FIRST: Final = 8  # before a warp's first access: where am I, which element is mine
GAP: Final = 2  # before each further access
TAIL: Final = 1  # after the last
LOADS_IN_FLIGHT: Final = 8  # a load is used before this many further accesses have issued

GAPS_TEXT: Final = (
    f"assumed, as only accesses were captured: {GAP_FIRST} other instructions before a warp's first access, {GAP} "
    f"before each further one, {TAIL} after the last; no barriers; untimed"
)
DEPENDENCIES_TEXT: Final = (
    "assumed: a load is first used by the first instruction that leads to the warp's next store or atomic, but no "
    f"later than {LOADS_IN_FLIGHT} accesses on, or by the first one after the last access"
)

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.replay.engine.scheme import SchemeBase

class Engine:
    def __init__(
        self,
        numbers: dict[str, object],
        regions: NDArray[np.int64],
        region_of_page: NDArray[np.uint32],
        state: NDArray[np.uint8],
        scheme: SchemeBase,
        queueing: bool = False,
    ) -> None: ...
    def start_kernel(
        self,
        handle: int,
        start_ps: int,
        blocks: int,
        warps_per_block: int,
        threads_per_block: int,
        registers_per_block: int,
        shared_per_block: int,
    ) -> bool: ...
    def add_chunk(
        self,
        handle: int,
        blocks: NDArray[np.uint8],
        warps: NDArray[np.uint8],
        ops: NDArray[np.uint8],
        lines: NDArray[np.uint64],
        table: NDArray[np.int64],
    ) -> int: ...
    @property
    def now_ps(self) -> int: ...
    @property
    def memory_instructions(self) -> int: ...
    def run(self, operations: int) -> tuple[str, int]: ...
    def end_of_time_ps(self) -> int | None: ...
    def fill_l2(self, first_entry: int, end_entry: int) -> None: ...
    def drop_l2(self, first_entry: int, end_entry: int) -> None: ...
    def counters(self) -> dict[str, Any]: ...
    def channels(self) -> list[dict[str, int]]: ...
    def locations(self, entries: Sequence[int], eight_at_a_time: bool) -> list[dict[str, int]]: ...
    def dirty_sectors(self) -> int: ...

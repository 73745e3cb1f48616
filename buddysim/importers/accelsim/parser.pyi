from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from buddysim.importers.accelsim.header import KernelHeader
from buddysim.importers.accelsim.image import MemoryImage
from buddysim.importers.accelsim.opcodes import Opcode
from buddysim.importers.accelsim.warp import WarpStream

Records = tuple[NDArray[np.void], NDArray[np.void], NDArray[np.void], NDArray[np.uint64], NDArray[np.uint64]]

class KernelParser(WarpStream):
    last_pc: int
    @property
    def counts(self) -> dict[str, int]: ...
    def __init__(
        self,
        path: str,
        header: KernelHeader,
        classify: Callable[[str], Opcode],
        *,
        first_line: int = 0,
        include_local: bool = False,
        image: MemoryImage | None = None,
    ) -> None: ...
    def feed(self, text: bytes) -> None: ...
    def feed_lines(
        self,
        text: object,
        prefix: int,
        offsets: NDArray[np.int64],
        keys: NDArray[np.uint64],
        numbers: NDArray[np.int64],
    ) -> None: ...
    def end_lines(self) -> None: ...
    def finish(self) -> None: ...
    def pop_records(self) -> Records: ...

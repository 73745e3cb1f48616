import numpy as np
from numpy.typing import NDArray

from buddysim.importers.accelsim.header import KernelHeader

def index_lines(
    path: str, text: object, header: KernelHeader, first_line: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]: ...

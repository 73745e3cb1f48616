from typing import Any

from numpy.typing import NDArray

from buddysim.gist.csr_rows import Rows

TWIN: str

def encode(values: NDArray[Any], columns: int = 256, index_bytes: int = 1) -> Rows: ...
def decode(rows: Rows) -> NDArray[Any]: ...

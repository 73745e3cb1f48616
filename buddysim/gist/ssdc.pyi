from typing import Any

from numpy.typing import NDArray

from buddysim.gist.csr_rows import CsrRows

REFERENCE: str

def encode(values: NDArray[Any], columns: int = 256, index_bytes: int = 1) -> CsrRows: ...
def decode(rows: CsrRows) -> NDArray[Any]: ...

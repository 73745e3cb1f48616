import numpy as np
from numpy.typing import NDArray

from buddysim.compress.compressors import Data

def zero_entries(data: Data) -> NDArray[np.bool_]: ...

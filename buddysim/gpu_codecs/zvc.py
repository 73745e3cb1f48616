"""Zero-value compression (Rhu et al., cDMA, HPCA 2018): a mask of 32 bits, then the nonzero words.

Three launches encode: they measure the payload of each part, sum the lengths, and write the payload. One launch
decodes. The starts of the parts stay on the GPU; they are the decoder's index and not part of the payload.
"""

from __future__ import annotations

import numpy as np

from buddysim.gpu_codecs.opencl_device import SCAN, LaunchShape, OpenclDevice, Words

SOURCES = ("scan.cl", "zvc.cl")
#: Options of the compressor of the same name under which it gives the same bytes.
STORED_AS = {"window": 4096}
#: Whether the payload equals the compressor's; False: the compressor only decodes it.
EXACT = True
LAYOUTS = ("coalesced", "chunked")
#: Words of a group, groups of a tile.
GROUP, TILE = 32, 32


def run(gpu: OpenclDevice, words: Words, layout: str, launch: LaunchShape) -> tuple[bytes, Words]:
    """Encode and decode a tensor.

    Parameters
    ----------
    words : the tensor's 32-bit words
    layout : a name of `LAYOUTS`

    Returns
    -------
    the payload, and the decoded words
    """
    groups, tail = divmod(len(words), GROUP)
    chunked = layout == "chunked"
    parts = launch.grid * launch.block if chunked else -(-groups // TILE)
    shape = (groups, -(-groups // parts)) if chunked else (groups,)
    data, sizes, starts = gpu.buffer(len(words), words), gpu.buffer(parts + 1), gpu.buffer(parts + 1)
    payload, back = gpu.buffer(len(words) + groups + 1), gpu.buffer(len(words))
    gpu.launch(f"sizes_{layout}", launch, data, sizes, *shape)
    gpu.launch("scan", SCAN, sizes, starts, parts + 1)
    gpu.launch(f"scatter_{layout}", launch, data, starts, payload, *shape)
    gpu.launch(f"gather_{layout}", launch, payload, starts, back, *shape)
    length = 4 * int(gpu.read(starts, parts + 1)[-1])
    if tail:
        one = LaunchShape(1, 1)
        gpu.launch("scatter_tail", one, data, starts, payload, groups, tail, parts)
        gpu.launch("gather_tail", one, payload, starts, back, groups, tail, parts)
        length += -(-(tail + 32 * int(np.count_nonzero(words[-tail:]))) // 8)
    return gpu.read_bytes(payload, length), gpu.read(back, len(words))

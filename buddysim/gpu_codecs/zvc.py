"""Zero-value compression (Rhu et al., cDMA, HPCA 2018): a mask of 32 bits, then the words that aren't zero.

Three launches encode: how long each part's code is, the sums of these, the code. One decodes. The starts of the parts
stay on the GPU; they are the decoder's index and no part of the code.
"""

from __future__ import annotations

from buddysim.gpu_codecs.gpu import Gpu, Launch, Words

SOURCES = ("scan.cl", "zvc.cl")
#: Options of the compressor of the same name that gives the same bytes.
STORED_AS = {"window": 4096}
#: Words of a group, groups of a tile.
GROUP, TILE = 32, 32
SCAN = Launch(1, 256)


def run(gpu: Gpu, words: Words, layout: str, launch: Launch) -> tuple[Words, Words]:
    """Encodes and decodes.

    Parameters
    ----------
    words : of the tensor, a multiple of 32
    layout : of `buddysim.gpu_codecs.LAYOUTS`

    Returns
    -------
    the code, and what decoding it gave
    """
    groups = len(words) // GROUP
    chunked = layout == "chunked"
    parts = launch.grid * launch.block if chunked else -(-groups // TILE)
    shape = (groups, -(-groups // parts)) if chunked else (groups,)
    data, sizes, starts = gpu.buffer(len(words), words), gpu.buffer(parts + 1), gpu.buffer(parts + 1)
    code, back = gpu.buffer(len(words) + groups), gpu.buffer(len(words))
    gpu.launch(f"sizes_{layout}", launch, data, sizes, *shape)
    gpu.launch("scan", SCAN, sizes, starts, parts + 1)
    gpu.launch(f"scatter_{layout}", launch, data, starts, code, *shape)
    gpu.launch(f"gather_{layout}", launch, code, starts, back, *shape)
    length = int(gpu.read(starts, parts + 1)[-1])
    return gpu.read(code, length), gpu.read(back, len(words))

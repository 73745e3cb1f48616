"""Run-length encoding of zeros: counts of zeros and of other words, a byte each, and these words.

It is the package's `rle` as feature maps are measured with it (``kind="zero"``, windows of 4 KB); the CSWAP paper gives
no format. Three launches encode: how long each part's code is, the sums of these, the code. One decodes. The starts of
the parts stay on the GPU, and in the chunked layout what is left of the segment that each begins in; they are the
decoder's index and no part of the code.
"""

from __future__ import annotations

from buddysim.gpu_codecs.opencl_device import SCAN, LaunchShape, OpenclDevice, Words

SOURCES = ("scan.cl", "rle.cl")
#: Options of the compressor of the same name that gives the same bytes.
STORED_AS = {"window": 4096}
#: Whether these are the compressor's bytes, not only bytes that it decodes.
EXACT = True
LAYOUTS = ("coalesced", "chunked")
#: Words of a window.
WINDOW = 1024


def run(gpu: OpenclDevice, words: Words, layout: str, launch: LaunchShape) -> tuple[bytes, Words]:
    """Encodes and decodes.

    Parameters
    ----------
    words : of the tensor
    layout : of `LAYOUTS`

    Returns
    -------
    the code, and what decoding it gave
    """
    count, windows = len(words), -(-len(words) // WINDOW)
    chunked = layout == "chunked"
    parts = launch.grid * launch.block if chunked else windows
    shape = (count, -(-count // parts)) if chunked else (count,)
    data, sizes, starts = gpu.buffer(count, words), gpu.buffer(parts + 1), gpu.buffer(parts + 1)
    index = (gpu.buffer(parts),) if chunked else ()
    code, back = gpu.buffer(count + -(-count // 2) + windows), gpu.buffer(count)
    gpu.launch(f"sizes_{layout}", launch, data, sizes, *shape)
    gpu.launch("scan", SCAN, sizes, starts, parts + 1)
    gpu.launch(f"scatter_{layout}", launch, data, starts, code, *index, *shape)
    gpu.launch(f"gather_{layout}", launch, code, starts, *index, back, *shape)
    halves = int(gpu.read(starts, parts + 1)[-1])
    return gpu.read_bytes(code, 2 * halves), gpu.read(back, count)

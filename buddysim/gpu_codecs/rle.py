"""Run-length encoding of zeros: counts of zeros and of other words, a byte each, then these other words.

It gives the bytes of the package's `rle` with ``kind="zero"`` and windows of 4 KB, as feature maps are measured; the
CSWAP paper defines no format. Three launches encode: they measure the payload of each part, sum the lengths, and write
the payload. One launch decodes. The starts of the parts stay on the GPU, and in the chunked layout the rest of the
segment at each start. They are the decoder's index and not part of the payload.
"""

from __future__ import annotations

from buddysim.gpu_codecs.opencl_device import SCAN, LaunchShape, OpenclDevice, Words

SOURCES = ("scan.cl", "rle.cl")
#: Options of the compressor of the same name under which it gives the same bytes.
STORED_AS = {"window": 4096}
#: Whether the payload equals the compressor's; False: the compressor only decodes it.
EXACT = True
LAYOUTS = ("coalesced", "chunked")
#: Words of a window.
WINDOW = 1024


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
    count, windows = len(words), -(-len(words) // WINDOW)
    chunked = layout == "chunked"
    parts = launch.grid * launch.block if chunked else windows
    shape = (count, -(-count // parts)) if chunked else (count,)
    data, sizes, starts = gpu.buffer(count, words), gpu.buffer(parts + 1), gpu.buffer(parts + 1)
    index = (gpu.buffer(parts),) if chunked else ()
    payload, back = gpu.buffer(count + -(-count // 2) + windows), gpu.buffer(count)
    gpu.launch(f"sizes_{layout}", launch, data, sizes, *shape)
    gpu.launch("scan", SCAN, sizes, starts, parts + 1)
    gpu.launch(f"scatter_{layout}", launch, data, starts, payload, *index, *shape)
    gpu.launch(f"gather_{layout}", launch, payload, starts, *index, back, *shape)
    halves = int(gpu.read(starts, parts + 1)[-1])
    return gpu.read_bytes(payload, 2 * halves), gpu.read(back, count)

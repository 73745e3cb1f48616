"""Compressed sparse rows (CSWAP, cuSPARSE): for each window a pointer, the columns of the nonzero words, these words.

Three launches encode: they count the nonzero words of each part, sum the counts, and write the payload. One launch
decodes. The sums stay on the GPU; they are the decoder's index and not part of the payload.
"""

from __future__ import annotations

from buddysim.gpu_codecs.opencl_device import SCAN, LaunchShape, OpenclDevice, Words

SOURCES = ("scan.cl", "csr.cl")
#: Options of the compressor of the same name under which it gives the same bytes: 4 B indices, a row for each window.
STORED_AS = {"window": 4096}
#: Whether the payload equals the compressor's; False: the compressor only decodes it.
EXACT = True
LAYOUTS = ("coalesced", "chunked")
#: Words of a row.
WINDOW = 1024
_MIN_UNIT = 32


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
    unit, shape = WINDOW, [len(words)]
    if layout == "chunked":
        unit, per = chunks(len(words), launch)
        shape += [unit, per]
    units, windows = -(-len(words) // unit), -(-len(words) // WINDOW)
    data, sizes, starts = gpu.buffer(len(words), words), gpu.buffer(units + 1), gpu.buffer(units + 1)
    payload, back = gpu.buffer(2 * len(words) + windows), gpu.buffer(len(words))
    gpu.launch(f"sizes_{layout}", launch, data, sizes, *shape)
    gpu.launch("scan", SCAN, sizes, starts, units + 1)
    gpu.launch(f"scatter_{layout}", launch, data, starts, payload, *shape)
    gpu.launch(f"gather_{layout}", launch, payload, starts, back, *shape)
    length = windows + 2 * int(gpu.read(starts, units + 1)[-1])
    return gpu.read(payload, length).tobytes(), gpu.read(back, len(words))


def chunks(words: int, launch: LaunchShape) -> tuple[int, int]:
    """Return the words of a unit, a power of two up to a window, and the units of a work-item."""
    items = launch.grid * launch.block
    unit = _MIN_UNIT
    while unit < WINDOW and unit * items < words:
        unit *= 2
    units = -(-words // unit)
    return unit, -(-units // items)

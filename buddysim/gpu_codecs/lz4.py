"""LZ4 blocks of 64 KB, one work-group each, as NVIDIA's nvCOMP divides tensors for LZ4.

Three launches encode: they compress each block into a slot of its own, sum the sizes, and pack the payloads. One launch
decodes. The search for matches differs from liblz4's, so payloads do too; each decoder decodes the other's payloads.
The starts of the blocks stay on the GPU.
"""

from __future__ import annotations

from typing import Any

from buddysim.gpu_codecs.opencl_device import SCAN, LaunchShape, OpenclDevice, Words

SOURCES = ("scan.cl", "lz4.cl")
#: Options with which the compressor of the same name decodes the payload.
STORED_AS = {"window": 65536}
#: Whether the payload equals the compressor's; False: the compressor only decodes it.
EXACT = False
#: Neighbouring work-items read neighbouring bytes: a stream for each work-item would need a hash table for each.
LAYOUTS = ("coalesced",)
BLOCK, SLOT = 65536, 65824


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
    blocks = -(-words.nbytes // BLOCK)
    data, sizes, starts = gpu.buffer(len(words), words), gpu.buffer(blocks + 1), gpu.buffer(blocks + 1)
    slots, payload = gpu.buffer(blocks * SLOT // 4), gpu.buffer(blocks * SLOT // 4)
    gpu.launch(f"sizes_{layout}", launch, data, slots, sizes, words.nbytes)
    gpu.launch("scan", SCAN, sizes, starts, blocks + 1)
    gpu.launch(f"scatter_{layout}", launch, slots, starts, payload, words.nbytes)
    back = decoded(gpu, payload, starts, words.nbytes, layout, launch)
    length = int(gpu.read(starts, blocks + 1)[-1])
    return gpu.read_bytes(payload, length), back


def decoded(gpu: OpenclDevice, payload: Any, starts: Any, byte_count: int, layout: str, launch: LaunchShape) -> Words:
    """Decode blocks of any encoder.

    Parameters
    ----------
    payload, starts : buffers: the blocks; the start of each block, then the end of the last one
    byte_count : bytes of the decoded data
    """
    back = gpu.buffer(-(-byte_count // 4))
    gpu.launch(f"gather_{layout}", launch, payload, starts, back, byte_count)
    return gpu.read(back, byte_count // 4)

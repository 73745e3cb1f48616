"""Program that the codec simulation captures.

Usage: ``python -m buddysim.gpu_codecs.warp_program CODEC LAYOUT BYTES SPARSITY GRID:BLOCK ...``.

It encodes and decodes one synthetic tensor with each launch, compares both results with the package's compressor, and
prints the length of the payload.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from buddysim.base.boundary import run_program
from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, decompress
from buddysim.gpu_codecs import REGISTRY
from buddysim.gpu_codecs.opencl_device import LaunchShape, OpenclDevice, Words
from buddysim.gpu_codecs.synthetic_tensor import synthetic_words


def main(arguments: Sequence[str]) -> int:
    """Run a codec with each launch.

    Parameters
    ----------
    arguments : CODEC, LAYOUT, BYTES, SPARSITY, then GRID:BLOCK of each launch

    Raises
    ------
    BuddysimError
        if the payload or the decoded tensor differs from the compressor's
    """
    codec, layout, byte_count, sparsity, *launches = arguments
    module = REGISTRY.find(codec)
    words = synthetic_words(int(byte_count), float(sparsity))
    gpu, length = OpenclDevice(module.SOURCES), 0
    for text in launches:
        grid, block = map(int, text.split(":"))
        payload, back = module.run(gpu, words, layout, LaunchShape(grid, block))
        if not payload_matches(codec, payload, words) or back.tobytes() != words.tobytes():
            raise BuddysimError(f"{codec}, {layout}, {text}: expected the compressor's bytes")
        length = len(payload)
    print(length)
    return 0


def payload_matches(codec: str, payload: bytes, words: Words) -> bool:
    """Whether the compressor gives this payload; for a codec that is not exact, whether the compressor decodes it."""
    module = REGISTRY.find(codec)
    if module.EXACT:
        return payload == compress(words, codec, **module.STORED_AS)
    return decompress(payload, codec, words.nbytes, **module.STORED_AS) == words.tobytes()


if __name__ == "__main__":
    sys.exit(run_program(lambda: main(sys.argv[1:])))

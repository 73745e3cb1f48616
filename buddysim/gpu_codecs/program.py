"""The program that is captured: ``python -m buddysim.gpu_codecs.program CODEC LAYOUT BYTES SPARSITY GRID:BLOCK ...``.

It encodes and decodes one synthetic tensor with each launch given, checks both against the package's compressor, and
prints the length of the code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress
from buddysim.gpu_codecs import REGISTRY
from buddysim.gpu_codecs.gpu import Gpu, Launch
from buddysim.gpu_codecs.tensor import synthetic


def main(arguments: Sequence[str]) -> int:
    """Runs a codec with each launch."""
    codec, layout, byte_count, sparsity, *launches = arguments
    module = REGISTRY.find(codec)
    words = synthetic(int(byte_count), float(sparsity))
    expected = compress(words, codec, **module.STORED_AS)
    gpu = Gpu(module.SOURCES)
    for text in launches:
        grid, block = map(int, text.split(":"))
        code, back = module.run(gpu, words, layout, Launch(grid, block))
        if code.tobytes() != expected or back.tobytes() != words.tobytes():
            raise BuddysimError(f"{codec}, {layout}, {text}: expected the compressor's bytes")
    print(len(expected))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

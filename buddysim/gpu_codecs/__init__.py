"""Codecs of feature maps as OpenCL kernels, and their times on simulated GPUs (CSWAP, Sec. IV-D, IV-E).

A codec is one file of this folder, with its kernels in files of the same name; `REGISTRY` lists the codecs.
`warp_program` runs a codec on real bytes, `simulate_codec` captures that run and replays it, `times` reads the
simulated times that the package contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.compress.compressors import find

#: Distribution of work. Coalesced: work-groups process tiles round-robin, and neighbouring work-items read neighbouring
#: words. Chunked: every work-item processes one contiguous run of words.
LAYOUTS = ("coalesced", "chunked")
GRIDS = (1, 4096)
BLOCKS = (64, 128)

CONTRACT = ("SOURCES", "STORED_AS", "EXACT", "LAYOUTS", "run")


def _codecs_of(module: ModuleType) -> Mapping[str, ModuleType]:
    if not all(hasattr(module, name) for name in CONTRACT):
        return {}
    return {module.__name__.rpartition(".")[2]: module}


#: The codecs by name; the compressor of the same name in `buddysim.compress` gives the same bytes.
REGISTRY: Registry[ModuleType] = Registry("GPU codec", __name__, CONTRACT, _codecs_of)


def is_installed(codec: str) -> bool:
    """Whether the library of the codec's compressor, which gives the sizes of feature maps, is installed."""
    compressor = find(codec)
    return not hasattr(compressor, "available") or bool(compressor.available())


def not_installed_text(codecs: Iterable[str]) -> str:
    """Note on the codecs whose library is missing, with the install line of each; empty if all are installed."""
    missing = [
        f"{codec} (not installed: pip install 'buddysim[{codec}]')" for codec in codecs if not is_installed(codec)
    ]
    return f"without {', '.join(missing)}" if missing else ""

"""Codecs of feature maps as OpenCL kernels, and how long they take on simulated GPUs (CSWAP, Sec. IV-D, IV-E).

A codec is one file of this folder and its kernels beside it; `REGISTRY` finds them. `program` runs one on real bytes,
`measure` captures that run and replays it, `times` reads the measurements that ship.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry

#: How work is shared out: work-groups take tiles of neighbouring words in turns and neighbouring work-items read
#: neighbouring words, or every work-item has one contiguous run of words.
LAYOUTS = ("coalesced", "chunked")
GRIDS = (1, 4096)
BLOCKS = (64, 128)

CONTRACT = ("SOURCES", "STORED_AS", "EXACT", "LAYOUTS", "run")


def _adopt(module: ModuleType) -> Mapping[str, ModuleType]:
    if not all(hasattr(module, name) for name in CONTRACT):
        return {}
    return {module.__name__.rpartition(".")[2]: module}


#: The codecs by name, which is that of the compressor in `buddysim.compress` that gives the same bytes.
REGISTRY: Registry[ModuleType] = Registry("GPU codec", __name__, CONTRACT, _adopt)

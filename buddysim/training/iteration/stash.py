"""Decisions about one feature map between its last forward and its first backward use: a `Stash`.

The feature map stays as it is, is encoded on the GPU, is offloaded to the host, or both. The host may encode it again.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Encoding:
    """An encoded form of a feature map: its bytes, and the times of encoding and decoding."""

    byte_count: int
    encode_ps: int
    decode_ps: int


@dataclass(frozen=True)
class Offload:
    """The copy of a feature map to the host, and back. Layers are positions in the network.

    Attributes
    ----------
    link_bytes : bytes that cross the link in each direction, where the DMA engine compresses them; None: all bytes of
        the feature map or of its encoding
    offload_ps, prefetch_ps : times of the two copies; None: the link's latency, and `link_bytes` at its bandwidth
    offload_deadline : layer whose forward step waits at its end for the copy to the host; None: the step that launches
        the copy
    prefetch_launch : layer whose backward step launches the copy back; the step before the first reader waits for it.
        None: the plan's rule decides (`Plan.prefetch`)
    host_encoding : form that the host makes of the arrived bytes, and undoes before the copy back
    host_encoding_deadline : layer whose forward step waits at its end for the host's encoding; None: the step that
        waits for the copy
    """

    link_bytes: int | None = None
    offload_ps: int | None = None
    prefetch_ps: int | None = None
    offload_deadline: int | None = None
    prefetch_launch: int | None = None
    host_encoding: Encoding | None = None
    host_encoding_deadline: int | None = None


@dataclass(frozen=True)
class Stash:
    """How one feature map is stored. Pinned host memory holds what crossed the GPU's end of the link.

    Attributes
    ----------
    encoding : form that a step of its own makes on the GPU: right before the last forward reader if the copy overlaps
        with that reader, else right after it
    decode_before_use : True: a step before the first backward reader makes a decoded copy; False: backward steps read
        the encoding
    offload : copy to the host and back; None: the feature map stays on the GPU
    """

    encoding: Encoding | None = None
    decode_before_use: bool = True
    offload: Offload | None = None

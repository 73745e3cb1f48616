"""Decisions about one feature map between its last forward and its first backward use: a `Stash`.

It stays as it is, is encoded on the GPU, moves to the host, or both; on the host it may be encoded once more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Encoding:
    """An encoded form: its bytes, and how long it takes to make it and to undo it."""

    byte_count: int
    encode_ps: int
    decode_ps: int


@dataclass(frozen=True)
class Offload:
    """A way to the host and back. Layers are positions in the network.

    Attributes
    ----------
    link_bytes : that cross the link, each way, where an engine on the way compresses; None: the map's or its code's
    offload_ps, prefetch_ps : of the copies; None: the link's latency, and `link_bytes` at its rate
    until : the layer whose forward step's end waits for the copy to the host; None: the step that launches it
    fetch : the layer whose backward step launches the copy back, for which the step before the first reader's waits;
        None: the plan's rule says when (`Plan.prefetch`)
    host : the form that the host makes of what came, and undoes before it goes back
    host_until : the layer whose forward step's end waits for the host to have made it; None: the step that waits for
        the copy
    """

    link_bytes: int | None = None
    offload_ps: int | None = None
    prefetch_ps: int | None = None
    until: int | None = None
    fetch: int | None = None
    host: Encoding | None = None
    host_until: int | None = None


@dataclass(frozen=True)
class Stash:
    """How one map is kept. Pinned host memory holds what crossed the GPU's end of the link: the map, or its code.

    Attributes
    ----------
    code : the form that it is encoded into on the GPU, by a step of its own: right before its last forward reader if
        its copy overlaps with that, else right after
    decoded : backward steps read a decoded copy, made by a step before the first of them; False: they read the code
    move : to the host and back; None: it stays on the GPU
    """

    code: Encoding | None = None
    decoded: bool = True
    move: Offload | None = None

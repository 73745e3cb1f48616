"""What a simulated plan says about its groups: bytes, time of kernels and launches, time on the link.

A group's figures depend on its own choice alone. So the plans in which all groups have the same choice give those of
every mixture. `docs/explanation/fit.md` shows why the bounds made of them hold.
"""

from __future__ import annotations

from typing import NamedTuple


class TimeBound(NamedTuple):
    """A sum that no plan of a placement undercuts: a constant, and parts of each group's additional work.

    Attributes
    ----------
    constant_ps : of the plan in which every group keeps what it saves
    kernels, launches : groups whose kernels of a second forward pass count by the GPU's time, and by the host's time to
        launch them; of other groups nothing counts
    is_whole : all kernels count by the GPU's time, those of encoding too
    """

    constant_ps: int
    kernels: frozenset[int] = frozenset()
    launches: frozenset[int] = frozenset()
    is_whole: bool = False


class GroupFacts(NamedTuple):
    """Figures of one plan, each by group unless said otherwise.

    Attributes
    ----------
    held_bytes : that live from the group's forward pass to its backward pass
    others_bytes : that live at the start of the group's backward pass and that no group's choice changes
    head_bytes : of the whole plan: the most that no group's choice changes, between forward and backward pass of all
    update_bytes : of the whole plan: the most that lives while weights are updated
    kernels_ps, launches_ps : of kernels on the GPU, and of launching them on the host
    offload_ps, prefetch_ps : of copies of what it saves to the host and back
    pinned_bytes : of host memory, for copies of what it saves
    host_bytes : of the whole plan: of host memory, throughout
    forward_ps, update_ps : of the whole plan: kernels before all copies back, and behind all of them
    bounds : of the whole plan
    """

    held_bytes: tuple[int, ...]
    others_bytes: tuple[int, ...]
    head_bytes: int
    update_bytes: int
    kernels_ps: tuple[int, ...]
    launches_ps: tuple[int, ...]
    offload_ps: tuple[int, ...]
    prefetch_ps: tuple[int, ...]
    pinned_bytes: tuple[int, ...]
    host_bytes: int
    forward_ps: int
    update_ps: int
    bounds: tuple[TimeBound, ...]

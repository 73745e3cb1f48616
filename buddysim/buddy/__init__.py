"""Buddy Compression's rules without timing: target ratios, the profiler that chooses them, entry sizes during a run.

The names load on first use: what asks for the options of a profile alone does not load the profiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.buddy.allocation_keys import allocation_keys
    from buddysim.buddy.distribution import Distribution
    from buddysim.buddy.other_input import targets_of_other_input
    from buddysim.buddy.profile_options import ProfileOptions
    from buddysim.buddy.profiler import AllocationProfile, Profile, profile, profile_under, profile_with
    from buddysim.buddy.sizes import SizeSource
    from buddysim.buddy.targets import ALL_TARGETS, TARGET, Target, Targets

__all__ = [
    "ALL_TARGETS",
    "TARGET",
    "AllocationProfile",
    "Distribution",
    "Profile",
    "ProfileOptions",
    "SizeSource",
    "Target",
    "Targets",
    "allocation_keys",
    "profile",
    "profile_under",
    "profile_with",
    "targets_of_other_input",
]

_HOMES = {
    "allocation_keys": "allocation_keys",
    "Distribution": "distribution",
    "targets_of_other_input": "other_input",
    **dict.fromkeys(("AllocationProfile", "Profile", "profile", "profile_under", "profile_with"), "profiler"),
    "ProfileOptions": "profile_options",
    "SizeSource": "sizes",
    **dict.fromkeys(("ALL_TARGETS", "TARGET", "Target", "Targets"), "targets"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

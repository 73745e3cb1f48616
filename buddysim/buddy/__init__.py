"""Buddy Compression's rules without timing: target ratios, the profiler that chooses them, entry sizes during a run.

The names load on first use: what asks for the options of a profile alone does not load the profiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.first_use import names_on_first_use

if TYPE_CHECKING:
    from buddysim.buddy.distribution import Distribution
    from buddysim.buddy.keys_by_allocation import allocation_keys
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
    "allocation_keys": "keys_by_allocation",
    "Distribution": "distribution",
    "targets_of_other_input": "other_input",
    **dict.fromkeys(("AllocationProfile", "Profile", "profile", "profile_under", "profile_with"), "profiler"),
    "ProfileOptions": "profile_options",
    "SizeSource": "sizes",
    **dict.fromkeys(("ALL_TARGETS", "TARGET", "Target", "Targets"), "targets"),
}

__getattr__ = names_on_first_use(__name__, _HOMES)

"""Buddy Compression's rules without timing: target ratios, the profiler that chooses them, entry sizes during a run."""

from __future__ import annotations

from buddysim.buddy.allocation_keys import allocation_keys
from buddysim.buddy.distribution import Distribution
from buddysim.buddy.other_input import targets_of_other_input
from buddysim.buddy.profile import AllocationProfile, Profile, profile, profile_under, profile_with
from buddysim.buddy.profile_options import ProfileOptions
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

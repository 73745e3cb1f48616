"""Targets of an analysis: chosen on the trace itself, or on another input of its program."""

from __future__ import annotations

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.buddy import Targets, profile_with, targets_of_other_input
from buddysim.buddy.profile_options import ProfileOptions
from buddysim.trace import Trace, open_trace
from buddysim.trace.partial import require_complete


def select_targets(trace: Trace, profile_options: ProfileOptions, options: AnalysisOptions) -> Targets:
    """Choose targets for the allocations of a trace.

    Raises
    ------
    BuddysimError
        if the other trace cannot be read, or has none of the trace's allocation names
    """
    if options.profile_from is None:
        return profile_with(trace, profile_options).targets
    with open_trace(options.profile_from) as other:
        require_complete(other, options.partial)
        return targets_of_other_input(profile_with(other, profile_options).targets, trace)


def target_source_text(options: AnalysisOptions) -> str:
    """Return the source of the targets, for notes."""
    if options.profile_from is None:
        return "targets chosen on the same trace"
    return "targets chosen on another input of the program"

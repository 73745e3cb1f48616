"""Targets that an analysis looks at: chosen on the trace itself, or on another input of its program."""

from __future__ import annotations

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.buddy import Targets, profile_with, targets_of_other_input
from buddysim.buddy.profile_options import ProfileOptions
from buddysim.trace import Trace, open_trace
from buddysim.trace.partial import require_complete


def select_targets(trace: Trace, how: ProfileOptions, options: AnalysisOptions) -> Targets:
    """The targets of a trace's allocations.

    Raises
    ------
    BuddysimError
        where the other input can't be read, or has none of the trace's names
    """
    if options.profile_from is None:
        return profile_with(trace, how).targets
    with open_trace(options.profile_from) as other:
        require_complete(other, options.partial)
        return targets_of_other_input(profile_with(other, how).targets, trace)


def target_source_text(options: AnalysisOptions) -> str:
    """Where targets come from, for notes."""
    if options.profile_from is None:
        return "targets from this very trace"
    return "targets from another input of the same program"

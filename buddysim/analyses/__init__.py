"""Analyses of a trace's memory contents under Buddy Compression: one analysis per file of this folder.

An analysis is a module with ``SUMMARY``, a line, and ``analyse(trace, options) -> Finding``; ``ORDER`` is its position
in lists; ``READS`` names the options that its result depends on (default: all); stored results have them in
their key. Its name is its file's name.
"""

from __future__ import annotations

from dataclasses import fields, replace
from types import ModuleType

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, DoesNotApply
from buddysim.base.registry import Registry, modules_with
from buddysim.base.returned import returned
from buddysim.trace import Trace
from buddysim.trace.partial import partial_contents, require_complete

CONTRACT = ("SUMMARY", "analyse")

REGISTRY: Registry[ModuleType] = Registry("analysis", __name__, CONTRACT, modules_with(*CONTRACT))

__all__ = ["REGISTRY", "AnalysisOptions", "AnalysisResult", "DoesNotApply", "analyse", "reads", "replays"]


def reads(name: str) -> tuple[str, ...]:
    """Return the options that an analysis depends on."""
    all_options = tuple(field.name for field in fields(AnalysisOptions))
    return tuple(getattr(REGISTRY.find(name), "READS", all_options))


def replays(name: str) -> bool:
    """Whether an analysis replays the trace on the options' machine."""
    return "machine" in reads(name)


def analyse(trace: Trace, name: str, options: AnalysisOptions | None = None) -> AnalysisResult:
    """Analyse a trace.

    Parameters
    ----------
    name : a name of `REGISTRY`
    options : options; None: the defaults

    Raises
    ------
    DoesNotApply
        if the trace lacks data that only some analyses need
    BuddysimError
        if the trace lacks data that all analyses need, its end is missing without `AnalysisOptions.partial`, or an
        option is wrong
    """
    options = options or AnalysisOptions()
    require_complete(trace, options.partial)
    function = REGISTRY.find(name).analyse
    result = returned(function(trace, options), AnalysisResult, f"analysis {name}: analyse", function)
    if trace.interrupted:
        result = replace(result, notes=(f"partial trace: it has {partial_contents(trace)}", *result.notes))
    return result

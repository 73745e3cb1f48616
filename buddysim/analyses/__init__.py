"""What a trace's memory holds, and what a Buddy Compression memory makes of it: one analysis per file of this folder.

An analysis is a module with ``SUMMARY``, a line, and ``analyse(trace, options) -> Finding``; ``ORDER`` is its position
in lists; ``READS`` names the options that its finding depends on, all without it: findings are stored by these. Its
name is its file's.
"""

from __future__ import annotations

from dataclasses import fields, replace
from types import ModuleType

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, DoesNotApply
from buddysim.base.registry import Registry, modules_with
from buddysim.trace import Trace
from buddysim.trace.partial import partial_contents, require_complete

CONTRACT = ("SUMMARY", "analyse")

REGISTRY: Registry[ModuleType] = Registry("analysis", __name__, CONTRACT, modules_with(*CONTRACT))

__all__ = ["REGISTRY", "AnalysisOptions", "AnalysisResult", "DoesNotApply", "analyse", "reads", "replays"]


def reads(name: str) -> tuple[str, ...]:
    """The options that an analysis depends on."""
    every = tuple(field.name for field in fields(AnalysisOptions))
    return tuple(getattr(REGISTRY.find(name), "READS", every))


def replays(name: str) -> bool:
    """Whether an analysis replays the trace on the options' machine."""
    return "machine" in reads(name)


def analyse(trace: Trace, name: str, options: AnalysisOptions | None = None) -> AnalysisResult:
    """One analysis of a trace.

    Parameters
    ----------
    name : a name of `REGISTRY`
    options : how; None: the defaults

    Raises
    ------
    DoesNotApply
        where the trace lacks what only some analyses need
    BuddysimError
        where it lacks what all need, its end is missing without `AnalysisOptions.partial`, or an option is wrong
    """
    options = options or AnalysisOptions()
    require_complete(trace, options.partial)
    result: AnalysisResult = REGISTRY.find(name).analyse(trace, options)
    if trace.interrupted:
        result = replace(result, notes=(f"partial trace: it has {partial_contents(trace)}", *result.notes))
    return result

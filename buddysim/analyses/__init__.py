"""What a trace's memory holds, and what a Buddy Compression memory makes of it: one analysis per file of this folder.

An analysis is a module with ``SUMMARY``, a line, and ``analyse(trace, options) -> Finding``; ``ORDER`` is its position
in lists. Its name is its file's.
"""

from __future__ import annotations

from types import ModuleType

from buddysim.analyses.finding import Finding
from buddysim.analyses.options import Options
from buddysim.base.registry import Registry, modules_with
from buddysim.trace import Trace

CONTRACT = ("SUMMARY", "analyse")

REGISTRY: Registry[ModuleType] = Registry("analysis", __name__, CONTRACT, modules_with(*CONTRACT))

__all__ = ["REGISTRY", "Finding", "Options", "analyse"]


def analyse(trace: Trace, name: str, options: Options | None = None) -> Finding:
    """One analysis of a trace.

    Parameters
    ----------
    name : a name of `REGISTRY`
    options : how; None: the defaults

    Raises
    ------
    BuddysimError
        where the trace lacks what the analysis needs
    """
    finding: Finding = REGISTRY.find(name).analyse(trace, options or Options())
    return finding

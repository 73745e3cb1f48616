"""Replay GPU warp traces, with their real data values, through a memory system with Buddy Compression.

The public names load on first use, so that ``import buddysim`` and the command line start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim import compress, sweep
    from buddysim.analyses import analyse
    from buddysim.base.errors import BuddysimError
    from buddysim.base.plugins import load_plugin
    from buddysim.buddy import Profile, Targets, profile
    from buddysim.figures.result_figure import plot
    from buddysim.machine import Machine
    from buddysim.replay import Comparison, ReplayResult, compare, simulate
    from buddysim.trace import open_trace

__version__ = "0.1.0"

__all__ = [
    "BuddysimError",
    "Comparison",
    "Machine",
    "Profile",
    "ReplayResult",
    "Targets",
    "__version__",
    "analyse",
    "compare",
    "compress",
    "load_plugin",
    "open_trace",
    "plot",
    "profile",
    "simulate",
    "sweep",
]

_HOMES = {
    "BuddysimError": "buddysim.base.errors",
    "load_plugin": "buddysim.base.plugins",
    "analyse": "buddysim.analyses",
    "Machine": "buddysim.machine",
    "Comparison": "buddysim.replay",
    "Profile": "buddysim.buddy",
    "ReplayResult": "buddysim.replay",
    "Targets": "buddysim.buddy",
    "profile": "buddysim.buddy",
    "open_trace": "buddysim.trace",
    "plot": "buddysim.figures.result_figure",
    "compare": "buddysim.replay",
    "simulate": "buddysim.replay",
}


def __getattr__(name: str) -> Any:
    if name in ("compress", "sweep"):
        return import_module(f"buddysim.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

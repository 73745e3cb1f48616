"""Trace-driven simulator of GPU memory systems, and of training under GPU memory schemes.

The public names load on first use, so that ``import buddysim`` and the command line start at once.
"""

# The first lines that can be interrupted: until `base.signals` handles Ctrl-C, it ends a command without a traceback.
# No other module comes before them. A program that imports buddysim keeps its own handler.
import _signal  # type: ignore[import-not-found]
import sys

_is_command = (sys.argv[:1] == ["-m"] and "buddysim" in sys.orig_argv) or "".join(sys.argv[:1]).endswith("/buddysim")
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler and _is_command:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from importlib import import_module  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from buddysim import compress, sweep, training
    from buddysim.analyses import analyse
    from buddysim.base.errors import BuddysimError
    from buddysim.base.plugins import load_plugin
    from buddysim.buddy import Profile, Targets, profile
    from buddysim.figures.result_figure import plot
    from buddysim.machine import Machine
    from buddysim.replay import ReplayResult, SchemeResults, simulate, simulate_schemes
    from buddysim.sweep.api import run_sweep
    from buddysim.sweep.differences import diff
    from buddysim.trace import open_trace
    from buddysim.training import simulate as simulate_training
    from buddysim.training.fitting.fit import fit

__version__ = "0.1.0"

__all__ = [
    "BuddysimError",
    "Machine",
    "Profile",
    "ReplayResult",
    "SchemeResults",
    "Targets",
    "__version__",
    "analyse",
    "compress",
    "diff",
    "fit",
    "load_plugin",
    "open_trace",
    "plot",
    "profile",
    "run_sweep",
    "simulate",
    "simulate_schemes",
    "simulate_training",
    "sweep",
    "training",
]

_HOMES = {
    "BuddysimError": "buddysim.base.errors",
    "load_plugin": "buddysim.base.plugins",
    "analyse": "buddysim.analyses",
    "Machine": "buddysim.machine",
    "fit": "buddysim.training.fitting.fit",
    "SchemeResults": "buddysim.replay",
    "Profile": "buddysim.buddy",
    "ReplayResult": "buddysim.replay",
    "Targets": "buddysim.buddy",
    "profile": "buddysim.buddy",
    "open_trace": "buddysim.trace",
    "plot": "buddysim.figures.result_figure",
    "diff": "buddysim.sweep.differences",
    "run_sweep": "buddysim.sweep.api",
    "simulate_schemes": "buddysim.replay",
    "simulate": "buddysim.replay",
}

#: Public packages, loaded at first use.
_PACKAGES = ("compress", "sweep", "training")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"buddysim.{name}")
    if name == "simulate_training":
        return import_module("buddysim.training").simulate
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

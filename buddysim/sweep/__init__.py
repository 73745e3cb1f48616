"""Sweeps: many points of either engine, each simulated once, its result kept in a store that figures and tables read.

``buddysim.sweep(...)`` is `buddysim.sweep.api.sweep`: the package itself can be called, because the folder and the
function have one name.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        from buddysim.sweep.api import sweep

        return sweep(*arguments, **keywords)


sys.modules[__name__].__class__ = _Callable

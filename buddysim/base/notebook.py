"""How a notebook shows results: as the screen of their command does.

The screens are made by a higher folder. It is named as text, as `kinds` names registries, so that `base` imports
nothing above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import import_module
from typing import Any

from buddysim.base.boundary import ending, inside

#: The module and function that give the parts of the screen of a kind of result.
SCREENS = {
    "replay": ("buddysim.report.replay_screen", "result_parts"),
    "training": ("buddysim.report.training_screen", "training_parts"),
    "profile": ("buddysim.report.profile_screen", "profile_parts"),
}
_HTML = ("buddysim.report.screen", "format_as_html")


def html(kind: str, shown: Mapping[str, Mapping[str, Any]] | object) -> str:
    """HTML of results.

    Parameters
    ----------
    kind : one of `SCREENS`
    shown : what its function takes
    """
    return inside(
        lambda: str(_named(_HTML)(_named(SCREENS[kind])(shown))),
        lambda error: f"<pre>buddysim: {escape(ending(error).line)}</pre>",
    )


def _named(target_name: tuple[str, str]) -> Any:
    module, function = target_name
    return getattr(import_module(module), function)

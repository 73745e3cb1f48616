"""One point of a study: an engine and its settings, with a hash of everything that determines the result as its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from buddysim.base import plugins
from buddysim.sweep.axis import Value
from buddysim.sweep.engine_protocol import SweepEngine
from buddysim.sweep.engines import find

KEY_DIGITS = 40  # 160 bits


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One simulation.

    Attributes
    ----------
    engine : name of the engine
    settings : values of axes, and of machines' keys, by name; defaults for what isn't there
    """

    engine: str
    settings: Mapping[str, Value]

    @property
    def sweep_engine(self) -> SweepEngine:
        """Its engine."""
        return find(self.engine)

    @cached_property
    def identity(self) -> dict[str, str]:
        """Everything that determines the result, the engine's model version too."""
        engine = self.sweep_engine
        return {
            "engine": self.engine,
            "model_version": str(engine.model_version()),
            "machine": engine.machine_identity(self.settings),
            **engine.identity(self.settings),
        }

    @cached_property
    def key(self) -> str:
        """The key of its result in a store."""
        return key_of(self.identity)

    @cached_property
    def settings_hash(self) -> str:
        """A hash of the settings as given, files by their paths: the same when a file or the model has changed."""
        text = json.dumps([self.engine, sorted(self.settings.items())], ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]

    @cached_property
    def baseline(self) -> SweepPoint | None:
        """The point of the baseline scheme with the same settings; None if the engine has no baseline."""
        scheme = self.sweep_engine.BASELINE
        return None if scheme is None else SweepPoint(self.engine, {**self.settings, "scheme": scheme})

    def text(self) -> str:
        """The settings in a line."""
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())

    def spec(self) -> dict[str, Any]:
        """Return the data from which another process makes the same point (`from_spec`)."""
        return {
            "engine": self.engine,
            "settings": dict(self.settings),
            "key": self.key,
            "plugins": [str(path) for path in plugins.loaded_files()],
        }


def from_spec(spec: Mapping[str, Any]) -> SweepPoint:
    """The point of a `SweepPoint.spec`; loads the plug-ins that it needs."""
    for file in spec["plugins"]:
        plugins.load_plugin(file)
    return SweepPoint(spec["engine"], spec["settings"])


def key_of(identity: Mapping[str, str]) -> str:
    """Return the key of a result: a SHA-256 over what determines it, in hex, cut to `KEY_DIGITS`."""
    text = "\n".join(f"{key}={value}" for key, value in sorted(identity.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]

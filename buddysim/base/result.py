"""The base of `ReplayResult` and `TrainingResult`: flat counters of one scheme, and their provenance."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from buddysim.base.notebook import html
from buddysim.base.plugins import checksums
from buddysim.base.stack_frames import frame, result_rows

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class SchemeResult:
    """The result of one run of either engine under one scheme.

    Attributes
    ----------
    scheme : its name
    counters : flat, the same keys for every run (docs/reference/replay-counters.md defines each)
    provenance : versions, checksums, assumptions
    """

    _KIND: ClassVar[str]  # which screen shows it (`notebook.SCREENS`)

    scheme: str
    counters: dict[str, Any]
    provenance: dict[str, Any]

    @property
    def assumptions(self) -> dict[str, str]:
        """Assumptions of the simulation, by subject."""
        return dict(self.provenance["assumptions"])

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, as `--json` writes them for one scheme."""
        return {**self.counters, **self._more(), "provenance": self.provenance}

    def to_dataframe(self, of: str = "run") -> pandas.DataFrame:
        """Return the counters as a pandas data frame (needs pandas).

        Parameters
        ----------
        of : ``run``: one row; or a row for each part: ``kernel``, ``allocation`` of a replay, ``layer`` of a training

        Raises
        ------
        BuddysimError : no such parts; pandas is not installed
        """
        return frame(result_rows({self.scheme: self.to_dict()}, of))

    def _repr_html_(self) -> str:
        """The screen of the command, in a notebook."""
        return html(self._KIND, {self.scheme: self.to_dict()})

    def _more(self) -> dict[str, Any]:
        """Attributes of a kind of result in addition to its counters and its provenance."""
        return {}


def software() -> dict[str, Any]:
    """Return the versions behind a result and the checksums of loaded plug-ins, for its provenance."""
    versions: dict[str, Any] = {
        "buddysim": _version("buddysim"),
        "python": platform.python_version(),
        "numpy": _version("numpy"),
    }
    plugins = checksums()
    return {**versions, "plugins": plugins} if plugins else versions


@cache
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def file_name(path: object) -> str:
    """Return a file's name without its folders; bytes that are no UTF-8 are escaped, as results are UTF-8."""
    name = str(path).replace("\\", "/").rsplit("/", 1)[-1]
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def peak_rss_bytes() -> int:
    """Return the peak resident memory of this process, in bytes.

    Linux's ``ru_maxrss`` (in KiB) also counts what the parent held when it started the process; ``VmHWM`` doesn't.
    """
    with contextlib.suppress(OSError), Path("/proc/self/status").open(encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource  # not in browsers

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

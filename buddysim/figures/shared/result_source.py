"""Source of figures' numbers: results of both engines, and a user's file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.saved_results import read_results
from buddysim.base.terminal import one_line
from buddysim.sweep.cached_results import SavedResults

if TYPE_CHECKING:
    from buddysim.papers.buddy.buddy_study import BuddyStudy
    from buddysim.sweep.api import Results as SweepResults
    from buddysim.sweep.store import Store

_LONGEST_TEXT = 200

Results = Mapping[str, Mapping[str, Any]]


class ResultSource:
    """Results for a figure's `data`.

    Parameters
    ----------
    store : store of results of both engines; None: in memory only
    rerun : whether points with a stored result are simulated again
    file : the user's file that a figure with ``FILE`` draws
    columns : options of a figure that has ``OPTIONS``, such as `x`, `y`, `by` and `kind` of ``run_sweep``

    Attributes
    ----------
    training : results of training simulations: ``training.result("vgg19", 256, "vdnn-dyn")``,
        ``training.training_results("vgg19", 256, ("oracle", "vdnn-dyn"), machine="titan-x", link="pcie4")``
    file : as given
    """

    def __init__(
        self,
        store: Store | None = None,
        rerun: bool = False,
        file: str | os.PathLike[str] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.columns = dict(columns or {})
        self.training = SavedResults(store, rerun)
        self._file = None if file is None else Path(file)

    @property
    def file(self) -> Path:
        """Return the user's file.

        Raises
        ------
        BuddysimError
            if no file was given
        """
        if self._file is None:
            raise BuddysimError("this figure draws a file: Source(file=...)")
        return self._file

    def file_or(self, default: Path) -> Path:
        """Return the user's file, or another one where the user gave none."""
        return default if self._file is None else self._file

    def study(self, wants: str | None = None) -> SweepResults:
        """Return the results of the study that the user's file describes; missing points are simulated.

        Parameters
        ----------
        wants : a column of the figure; if it is relative to the baseline, the baselines are simulated too

        Raises
        ------
        BuddysimError
            if the file is no study, or a point fails
        """
        from buddysim.sweep.api import run_sweep
        from buddysim.sweep.study_file import read_study

        study = read_study(self.file)
        if wants is not None and wants == study.sweep_engine.AGAINST and study.baseline is None:
            study.baseline = {}
        results = run_sweep(study, store=self.training.store)
        if results.summary.failures:
            failed = results.summary.failures[0]
            raise BuddysimError(f"{self.file}: a point failed ({failed['why']}): {failed['reason']}")
        return results

    @cached_property
    def buddy(self) -> BuddyStudy:
        """Return the workloads of the Buddy Compression study at the requested scale, and their stored results.

        Raises
        ------
        BuddysimError
            if the scale or a workload is unknown
        """
        from buddysim.papers.buddy.buddy_study import FOLDER, SCALE, BuddyStudy

        only = [name.strip() for name in self.columns.get("only", "").split(",") if name.strip()]
        folder, scale = Path(self.columns.get("workloads", FOLDER)), self.columns.get("scale", SCALE)
        return BuddyStudy(self.training, folder, scale, tuple(only))

    def replay(
        self,
        trace: str | os.PathLike[str],
        schemes: Iterable[str],
        machine: str | os.PathLike[str] = "p100-nvlink2",
        **options: Any,
    ) -> dict[str, Mapping[str, Any]]:
        """Return results of a trace under some schemes, stored or replayed, in the form of ``run --json``.

        Parameters
        ----------
        options : options of `buddysim.simulate`

        Raises
        ------
        BuddysimError
            if `buddysim.simulate` refuses the options
        """
        return self.training.replay_results(trace, schemes, machine, **options)

    def saved_replay(self) -> Results:
        """Return the results in the user's file, by scheme, as ``run --json`` wrote them.

        Raises
        ------
        BuddysimError
            if the file cannot be read, or has other contents
        """
        return self._saved("time_ps", "run")

    def saved_training(self) -> Results:
        """Return the results in the user's file, by scheme, as ``train --json`` wrote them.

        Raises
        ------
        BuddysimError
            if the file cannot be read, or has other contents
        """
        return self._saved("per_layer", "train")

    def _saved(self, key: str, command: str) -> Results:
        """Results that a command wrote with ``--json``, each of which has a key."""
        written_by = f"'{command} --json' writes it"
        results = read_results(self.file, written_by, displayable)
        if not all(key in result for result in results.values()):
            raise BuddysimError(f"{self.file}: not a result as {written_by}")
        return results


def displayable(text: str) -> str:
    """Return a text of a file or a study as a figure can show it: one line."""
    return one_line(text, _LONGEST_TEXT)

"""Where figures get their numbers: results of both engines, and a file of the user's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import read_json
from buddysim.papers.saved import FOLDER, SavedResults

LARGEST_FILE = 2**28

Results = Mapping[str, Mapping[str, Any]]


class Source:
    """What a figure's `data` asks for results.

    Parameters
    ----------
    folder : where results of training simulations are saved; None keeps them in memory only
    fresh : simulates again what was saved before
    file : the file of the user's that a figure with ``FILE`` draws

    Attributes
    ----------
    training : results of training simulations: ``training.result("vgg19", 256, "vdnn-dyn")``,
        ``training.results("vgg19", 256, ("oracle", "vdnn-dyn"), machine="titan-x", link="pcie4")``
    file : as given
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = FOLDER,
        fresh: bool = False,
        file: str | os.PathLike[str] | None = None,
    ) -> None:
        self.training = SavedResults(None if folder is None else Path(folder), fresh)
        self._file = None if file is None else Path(file)

    @property
    def file(self) -> Path:
        """The file of the user's.

        Raises
        ------
        BuddysimError
            where none was given
        """
        if self._file is None:
            raise BuddysimError("this figure draws a file: Source(file=...)")
        return self._file

    def replay(
        self,
        trace: str | os.PathLike[str],
        schemes: Iterable[str],
        machine: str | os.PathLike[str] = "p100-nvlink2",
        **options: Any,
    ) -> dict[str, dict[str, Any]]:
        """Replays a trace under some schemes; the results by scheme, as ``run --json`` writes them.

        Parameters
        ----------
        options : as for `buddysim.simulate`

        Raises
        ------
        BuddysimError
            what `buddysim.simulate` refuses
        """
        from buddysim.replay import simulate

        return {scheme: simulate(trace, machine, scheme, **options).to_dict() for scheme in schemes}

    def saved_replay(self) -> Results:
        """The results in the user's file, by scheme, as ``run --json`` wrote them.

        Raises
        ------
        BuddysimError
            a file that can't be read, or holds something else
        """
        results = read_json(self.file, "result", LARGEST_FILE)
        if not isinstance(results, dict) or not all(
            isinstance(result, dict) and "time_ps" in result for result in results.values()
        ):
            raise BuddysimError(f"{self.file}: not a result as 'run --json' writes it")
        return results

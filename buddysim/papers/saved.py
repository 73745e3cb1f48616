"""Results of training simulations: read if they were saved, else simulated and saved.

A file holds what ``python -m buddysim train ... --json`` writes: an object by scheme name. Its name says the network,
the batch, the machine and the options. What was saved by another version of the simulator or for another machine file
is simulated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.jsonfile import write_json
from buddysim.base.textfile import read_json

#: Where results are saved, relative to the working folder.
FOLDER = Path("out") / "training"

Result = Mapping[str, Any]
LARGEST_FILE = 2**28


class SavedResults:
    """Results of training simulations, of which each is simulated once.

    Parameters
    ----------
    folder : where they are saved; None keeps them in memory only
    fresh : simulates again what was saved before

    Attributes
    ----------
    simulated : number of simulations so far
    """

    def __init__(self, folder: Path | None = FOLDER, fresh: bool = False) -> None:
        self.folder, self.fresh = folder, fresh
        self.simulated = 0
        self._known: dict[str, dict[str, Result]] = {}

    def results(
        self, network: str, batch: int, schemes: Iterable[str], machine: str = "titan-x", **options: Any
    ) -> dict[str, Result]:
        """The results of some schemes, by name.

        Parameters
        ----------
        options : as for `buddysim.training.simulate`

        Raises
        ------
        BuddysimError
            a saved file that can't be read; whatever `buddysim.training.simulate` refuses
        """
        name = file_name(network, batch, machine, options)
        if name not in self._known:
            self._known[name] = self._read(name, machine)
        known = self._known[name]
        missing = [scheme for scheme in schemes if scheme not in known]
        if missing:
            known |= {scheme: self._simulate(network, batch, machine, scheme, options) for scheme in missing}
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
                write_json(self.folder / name, known)
        return {scheme: known[scheme] for scheme in schemes}

    def result(self, network: str, batch: int, scheme: str, machine: str = "titan-x", **options: Any) -> Result:
        """The result of one scheme."""
        return self.results(network, batch, (scheme,), machine, **options)[scheme]

    def _simulate(self, network: str, batch: int, machine: str, scheme: str, options: Mapping[str, Any]) -> Result:
        from buddysim.training import simulate

        self.simulated += 1
        return simulate(network, batch, machine, scheme, **options).to_dict()

    def _read(self, name: str, machine: str) -> dict[str, Result]:
        if self.folder is None or self.fresh or not (self.folder / name).exists():
            return {}
        path = self.folder / name
        saved = read_json(path, "result", LARGEST_FILE)
        if not isinstance(saved, dict) or not all(isinstance(r, dict) and "time_ms" in r for r in saved.values()):
            raise BuddysimError(f"{path}: not a result as 'train --json' writes it (delete it to simulate again)")
        return {scheme: result for scheme, result in saved.items() if self._is_current(result, machine)}

    def _is_current(self, result: Result, machine: str) -> bool:
        from buddysim.machine.training import TrainingMachine

        run = result["provenance"]
        return bool(
            run["machine_checksum"] == TrainingMachine.load(machine).checksum
            and run["simulator_checksum"] == self._simulator_checksum
        )

    @cached_property
    def _simulator_checksum(self) -> str:
        from buddysim.training.result import simulator_checksum

        return simulator_checksum()


def file_name(network: str, batch: int, machine: str, options: Mapping[str, Any]) -> str:
    """The name of the file that such results are saved in."""
    parts = [network, str(batch), machine]
    parts += [f"{key}={value}" for key, value in sorted(options.items()) if value is not None]
    return "_".join(part.replace("/", "-").replace(" ", "-") for part in parts) + ".json"

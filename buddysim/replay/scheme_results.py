"""Results of several schemes on one trace, normalized to the baseline: the results that `run` shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.notebook import html
from buddysim.base.option import field_options
from buddysim.base.signature import show_options
from buddysim.base.stack_frames import frame, result_rows
from buddysim.buddy import Targets
from buddysim.machine import Machine
from buddysim.replay.request import Path, ReplayRequest
from buddysim.replay.result import ReplayResult
from buddysim.replay.schemes import BASELINE, DEFAULT, REGISTRY
from buddysim.replay.sensitivity import AUTO, NONE, Progress, prediction_range
from buddysim.replay.simulation import OpenTraces, Simulation
from buddysim.trace import Trace

if TYPE_CHECKING:
    import pandas


class SchemeResults(dict[str, ReplayResult]):
    """Results by scheme name, in the order in which the schemes were given."""

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return everything, as `run --json` writes it."""
        return {scheme: result.to_dict() for scheme, result in self.items()}

    def to_dataframe(self, of: str = "run") -> pandas.DataFrame:
        """Return the counters as a pandas data frame: a row for each scheme, or for each of its parts.

        Parameters
        ----------
        of : ``run``, ``kernel`` or ``allocation``

        Raises
        ------
        BuddysimError : no such parts; pandas is not installed
        """
        return frame(result_rows(self.to_dict(), of), "scheme")

    def _repr_html_(self) -> str:
        """Return the screen of ``buddysim run`` for a notebook."""
        return html("replay", self.to_dict())


def simulate_schemes(
    trace: Trace | Path,
    machine: Machine | Path = ReplayRequest.machine,
    schemes: Sequence[str] = (DEFAULT, BASELINE),
    targets: Targets | Path | None = ReplayRequest.targets,
    *,
    baseline_set: Mapping[str, object] | None = None,
    equal_capacity: bool = False,
    sensitivity: str = ReplayRequest.sensitivity,
    start_progress: Callable[[str], Progress] | None = None,
    **keywords: Any,
) -> SchemeResults:
    """Replay a trace under several schemes and normalize their times to the baseline's (`ideal`).

    Parameters
    ----------
    schemes : names of replay schemes; without the baseline there are no slowdowns
    baseline_set : settings of the baseline's machine alone, by dotted key: ``{"link.bandwidth": "150 GB/s"}`` holds it
        at one link while `machine` goes through several
    equal_capacity : every scheme may use as much device memory as `buddy` uses under the targets
    start_progress : called with the name of a scheme before its runs, gives their `progress`

    Returns
    -------
    SchemeResults : a dict of ReplayResult, by scheme name

    Raises
    ------
    BuddysimError : as `simulate` has it; settings for a baseline that isn't among the schemes

    Notes
    -----
    Every scheme, the baseline too, is perturbed alike, and the range of a slowdown is over runs with equal
    perturbations. The sensitivity ``auto`` is ``none`` without a baseline to compare with.
    """
    for scheme in schemes:
        REGISTRY.find(scheme)
    request = ReplayRequest(trace, machine, targets=targets, **keywords)
    machine = request.load_machine()
    settings = {key: str(value) for key, value in (baseline_set or {}).items()}
    if settings and BASELINE not in schemes:
        raise BuddysimError(f"baseline_set: {BASELINE}, the baseline, is not among the schemes: {', '.join(schemes)}")
    machines = dict.fromkeys(schemes, machine)
    if settings:
        machines[BASELINE] = machine.with_overrides(dict(baseline_set or {}), "baseline_set")
    if sensitivity == AUTO and (BASELINE not in schemes or len(machines) < 2):
        sensitivity = NONE
    with OpenTraces() as files:
        simulation = Simulation(files, request)
        capacity_bytes = None
        if equal_capacity:
            capacity_bytes = simulation.footprint(machine, REGISTRY.find(DEFAULT)).largest_device_bytes()
        results = {}
        for scheme, its_machine in machines.items():
            progress = start_progress(scheme) if start_progress else None
            results[scheme] = simulation.result(its_machine, scheme, sensitivity, progress, capacity_bytes)
    if capacity_bytes is not None:
        results = {
            scheme: replace(result, provenance={**result.provenance, "equal_capacity_bytes": capacity_bytes})
            for scheme, result in results.items()
        }
    if BASELINE not in results:
        return SchemeResults(results)
    baseline = results[BASELINE]
    about = {
        "scheme": BASELINE,
        "machine_checksum": machines[BASELINE].checksum,
        "settings": settings,
    }
    return SchemeResults(
        {
            scheme: replace(
                result, slowdown=slowdown(result, baseline), provenance={**result.provenance, "baseline": about}
            )
            for scheme, result in results.items()
        }
    )


show_options(simulate_schemes, {n: o for n, o in field_options(ReplayRequest).items() if n != "scheme"})


def slowdown(result: ReplayResult, baseline: ReplayResult) -> dict[str, float | None]:
    """Return time / time of the baseline, and the range of this ratio over equally perturbed runs."""

    def ratio(time_ps: int, baseline_ps: int) -> float:
        return time_ps / max(1, baseline_ps)

    here = ratio(result.counters["time_ps"], baseline.counters["time_ps"])
    changed = [
        ratio(*pair) for pair in zip(result.sensitivity["time_ps"], baseline.sensitivity["time_ps"], strict=True)
    ]
    low, high = slowdown_range(here, changed) if changed else (None, None)
    return {"ratio": here, "min": low, "max": high}


def slowdown_range(ratio: float, changed: Sequence[float]) -> tuple[float, float]:
    """Return the range in which a slowdown lies after another small change.

    Parameters
    ----------
    ratio : of the unchanged runs
    changed : of equally perturbed runs
    """
    if min(ratio, *changed) <= 0:  # nothing ran
        return min(ratio, *changed), max(ratio, *changed)
    return prediction_range(ratio, changed)

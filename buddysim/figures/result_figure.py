"""Figure of a result object, in a notebook or a script: ``buddysim.plot(result)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.result import SchemeResult
from buddysim.figures import overview, stalls
from buddysim.replay.result import ReplayResult
from buddysim.training.result import TrainingResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EXPECTED = "expected results of one engine: of simulate, simulate_schemes or simulate_training"


def plot(result: SchemeResult | Mapping[str, SchemeResult]) -> Figure:
    """Draw results: time and traffic of replays (`plot overview`), layer times and stalls of trainings (`plot stalls`).

    Parameters
    ----------
    result : a result, or results by scheme name, for example of `buddysim.simulate_schemes`; all of one engine. Replays
        without the baseline ``ideal`` show simulated times; with it, slowdowns

    Returns
    -------
    matplotlib.figure.Figure, which a notebook shows and ``savefig`` writes

    Raises
    ------
    BuddysimError : an argument that is no result, or results of both engines
    """
    if not isinstance(result, SchemeResult | Mapping):
        raise BuddysimError(f"plot: {type(result).__name__}: not a result: {_EXPECTED}")
    results = {result.scheme: result} if isinstance(result, SchemeResult) else dict(result)
    content = {scheme: each.to_dict() for scheme, each in results.items() if isinstance(each, SchemeResult)}
    if content and len(content) == len(results):
        if all(isinstance(each, ReplayResult) for each in results.values()):
            return overview.draw(content, needs_baseline=False)
        if all(isinstance(each, TrainingResult) for each in results.values()):
            return stalls.draw(content)
    raise BuddysimError(f"plot: {_EXPECTED}")

"""The picture of a result in hand, in a notebook or a script: ``buddysim.plot(result)``."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from buddysim.base.errors import BuddysimError
from buddysim.base.result import SchemeResult
from buddysim.figures import overview, stalls
from buddysim.replay.result import ReplayResult
from buddysim.training.result import TrainingResult


def plot(result: SchemeResult | Mapping[str, SchemeResult]) -> Figure:
    """Draws results: time and traffic of replays (``plot overview``), compute and stalls of trainings (``stalls``).

    Parameters
    ----------
    result : a result, or results by scheme name, such as `compare` gives; all of one engine

    Returns
    -------
    matplotlib.figure.Figure, which a notebook shows and ``savefig`` writes

    Raises
    ------
    BuddysimError : something else than results, or results of both engines
    """
    results = {result.scheme: result} if isinstance(result, SchemeResult) else dict(result)
    content = {scheme: each.to_dict() for scheme, each in results.items() if isinstance(each, SchemeResult)}
    if content and len(content) == len(results):
        if all(isinstance(each, ReplayResult) for each in results.values()):
            return overview.draw(content)
        if all(isinstance(each, TrainingResult) for each in results.values()):
            return stalls.draw(content)
    raise BuddysimError("plot: expected results of one engine: of simulate, compare or buddysim.training.simulate")

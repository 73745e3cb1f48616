"""Measured effect of Gist's formats on the accuracy of small networks, from the shipped files.

`tools/measure_gist_accuracy.py` makes it: five trainings for each way of rounding, with the seeds of five in single
precision.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from buddysim.base.textfile import parse_json

#: By the kind of network that is trained.
FILES = {"cnn": "gist-accuracy.json", "transformer": "gist-accuracy-transformer.json"}

#: Student's t, of which 97.5 % are below, by degrees of freedom: five seeds have four.
_T_975 = {4: 2.7764451051977934}


@cache
def results(trained: str = "cnn") -> dict[str, Any]:
    """The trainings: ``network``, ``data``, ``iterations``, ``batch``; ``runs`` by way of rounding and seed."""
    path = resources.files("buddysim.training.contents") / "data" / FILES[trained]
    content: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"), FILES[trained])
    return content


@cache
def difference(condition: str, trained: str = "cnn") -> tuple[float, float]:
    """Accuracy against single precision in points, seed by seed: mean, and half of its 95 % interval."""
    runs = results(trained)["runs"]
    pairs = [run["accuracy"] - runs["fp32"][seed]["accuracy"] for seed, run in runs[condition].items()]
    half = _T_975[len(pairs) - 1] * stdev(pairs) / sqrt(len(pairs))
    return fmean(pairs), half


def difference_text(condition: str, trained: str = "cnn") -> str:
    """``-0.3 +- 0.5 points``."""
    return "{:+.1f} +- {:.1f} points".format(*difference(condition, trained))


def about(trained: str = "cnn") -> str:
    """The assumption about the accuracy: the training that the differences were measured in."""
    made = results(trained)
    mean = fmean(run["accuracy"] for run in made["runs"]["fp32"].values())
    return (
        f"The accuracy was measured on a small training ({made['network']} on {made['data']}, {made['iterations']:,} "
        f"minibatches of {made['batch']}, {mean:.1f} % in FP32): larger networks may lose more or less."
    )

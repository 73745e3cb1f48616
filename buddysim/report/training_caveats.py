"""Caveats of a simulated training: what a reader must know before believing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from buddysim.training.cost.operators.model import OPERATORS, PREDICTED
from buddysim.training.result import RECORDED_MODEL


def training_caveats(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Caveats of a training, the most important first."""
    run = next(iter(results.values()))["provenance"]
    of_capture = ("capture", "batch", "generic")
    yield from (run["assumptions"][subject] for subject in of_capture if subject in run["assumptions"])
    if run["calibration"].startswith((OPERATORS, PREDICTED)):
        yield f"{run['time_error'][0].upper()}{run['time_error'][1:]}."
    elif not run["calibrated"]:
        yield f"Layer times of this GPU are {run['calibration'].removesuffix('.')}."
        yield f"{run['time_error'][0].upper()}{run['time_error'][1:]}."
    if run["assumptions"]["model"] == RECORDED_MODEL:
        yield "Kernels wait for the host's launches; the copy of the input is left out."
    else:
        yield "Layers run one after the other; input copy and framework time are left out."
    if "8 MiB of workspace" in run["calibration"]:
        yield (
            "cuDNN 4 timings had at most 8 MiB of workspace and no FFT; the times of the other algorithms are derived "
            "(docs/explanation/layer-times.md)."
        )
    if any("activations" in result["provenance"]["assumptions"] for result in results.values()):
        yield "Compressed sizes are those of feature maps that were observed in another, small network."

"""Buddy Compression (Choukse et al.) as one more way to make room, alone and beneath vDNN's policies.

Device memory holds as much more as the network's allocations compress, and every computation takes as much longer as
the replay of the network's trace does under Buddy Compression than with unlimited memory. Both come from a saved result
(``buddy_result``) of that trace, or are given; without either nothing is known of the network, and no room is made. A
vDNN policy beneath it plans and offloads as on a GPU of the larger memory.

One ratio counts for all tensors, and one slowdown for all layers; copies of vDNN and accesses to buddy memory are taken
to share the link at no cost.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import read_json
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.option import Option, values
from buddysim.training.schemes import UNCHANGED, baseline, vdnn, vdnn_dyn

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

_BENEATH: dict[str, tuple[ModuleType, str]] = {
    "buddy-scaled": (baseline, "baseline-p"),
    **{f"buddy-scaled-{name}": (vdnn, name) for name in vdnn.SUMMARY},
    **{f"buddy-scaled-{name}": (vdnn_dyn, name) for name in vdnn_dyn.SUMMARY},
}
SUMMARY = {
    name: "everything stays in device memory that Buddy Compression makes larger"
    if name == "buddy-scaled"
    else f"{beneath} in device memory that Buddy Compression makes larger"
    for name, (_, beneath) in _BENEATH.items()
}
FAMILY = "buddy-scaled"
ORDER = 600
ACCURACY = UNCHANGED
LARGEST_FILE = 2**28
#: The carve-out is three times device memory.
LARGEST_RATIO = 4.0

OPTIONS = {
    "buddy_result": Option(
        str, "replay of the network's trace: what 'run --scheme ideal,buddy --json' wrote", "FILE", None,
        "Buddy Compression",
    ),
    "buddy_ratio": Option(
        float, "how much more device memory holds; instead of that result's", "RATIO", None, "Buddy Compression"
    ),
    "buddy_slowdown": Option(
        float, "how much longer computations take, such as 0.02; instead of that result's", "SHARE", None,
        "Buddy Compression",
    ),
}  # fmt: skip


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """The plan of what lies beneath, on a GPU of the larger memory."""
    ratio, slowdown, source = _measured(options.extra)
    module, beneath = _BENEATH[name]
    room = int((options.memory_bytes or machine.memory_bytes) * ratio)
    below: Plan = module.plan(network, batch, machine, cost, beneath, replace(options, memory_bytes=room))
    text = f"device memory holds {ratio:.3g}x, computations take {100 * slowdown:.2g} % longer ({source})"
    return replace(
        below,
        scheme=name,
        memory_ratio=ratio,
        time_factor=1 + slowdown,
        assumptions={**below.assumptions, "buddy": text},
    )


def _measured(extra: Any) -> tuple[float, float, str]:
    """Ratio, slowdown, and where they come from."""
    given = values(OPTIONS, extra)
    ratio, slowdown, source = 1.0, 0.0, "nothing is known of this network: buddy_result or buddy_ratio says it"
    if given["buddy_result"] is not None:
        ratio, slowdown = _of_result(given["buddy_result"])
        source = "replayed"
    if given["buddy_ratio"] is not None:
        ratio, source = float(given["buddy_ratio"]), "given"
    if given["buddy_slowdown"] is not None:
        slowdown, source = float(given["buddy_slowdown"]), "given" if source != "replayed" else "replayed, and given"
    if not 1 <= ratio <= LARGEST_RATIO:
        raise BuddysimError(f"buddy_ratio {ratio:g}: expected 1 to {LARGEST_RATIO:g}")
    if not -0.99 <= slowdown < 1000:
        raise BuddysimError(f"buddy_slowdown {slowdown:g}: expected a share such as 0.02")
    return ratio, slowdown, source


def _of_result(path: str) -> tuple[float, float]:
    """Ratio and slowdown of a saved replay; a trace that compression makes faster has a slowdown below 0."""
    results = read_json(path, "result", LARGEST_FILE)
    try:
        buddy, ideal = results["buddy"], results["ideal"]
        return float(buddy["compression.ratio"]), float(buddy["time_ps"]) / float(ideal["time_ps"]) - 1
    except (LookupError, TypeError, ValueError, ZeroDivisionError):
        raise BuddysimError(
            f"{path}: expected what 'run TRACE --scheme ideal,buddy --json' wrote: with results of ideal and buddy"
        ) from None

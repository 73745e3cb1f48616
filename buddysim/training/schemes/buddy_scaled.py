"""Buddy Compression (Choukse et al.) as two numbers that scale a training, alone and below vDNN's policies.

Alone, a recorded network runs as `eager` runs it, and one of layers as `baseline-p`.

Nothing is simulated. Device memory holds more by the compression ratio of the network's trace, and every computation
takes longer by the slowdown of the trace's replay against unlimited memory. Both numbers come from a saved result of
that replay (``buddy_result``), or are options. A vDNN policy plans and offloads as on a GPU of the larger memory.

One ratio counts for all tensors, and one slowdown for all layers. Copies of vDNN and accesses to buddy memory do not
compete for the link.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.option import Option, values
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.process_memory import compressed_capacity, outside_bytes
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, baseline, eager, vdnn, vdnn_dyn

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

_SCALED: dict[str, tuple[ModuleType, str]] = {
    "buddy-scaled": (baseline, "baseline-p"),
    **{f"buddy-scaled-{name}": (vdnn, name) for name in vdnn.SUMMARY},
    **{f"buddy-scaled-{name}": (vdnn_dyn, name) for name in vdnn_dyn.SUMMARY},
}
_EAGER = (eager, "eager")
SUMMARY = {
    name: f"{'eager or baseline-p' if module is baseline else scaled} scaled by a compression ratio and a slowdown"
    for name, (module, scaled) in _SCALED.items()
}
FAMILY = "buddy-scaled"
ORDER = 600
FACTS = SchemeFacts(
    source="Choukse et al., Buddy Compression, 2019",
    moves="nothing: device memory holds more tensors of every kind by a ratio, given or a replay's; the CUDA context "
    "stays as large",
    costs="a slowdown of every kernel, given or a replay's",
    applies="all networks: `eager` scaled, `baseline-p` on networks of layers, vDNN's policies",
    check="`tests/training/schemes/test_buddy_scaled.py`; the ratios' own study is `plot buddy-transformers`",
)
ACCURACY = UNCHANGED
#: Without a ratio, results would be those of the scheme that is scaled.
REQUIRES_ONE_OF = ("buddy_result", "buddy_ratio", "buddy_study")
#: Ends of the study's ranges: the least ratio with the largest slowdown, and the opposite.
STUDY_ENDS = ("pessimistic", "optimistic")
#: The carve-out is three times device memory.
MAX_RATIO = 4.0

_GROUP = "scaling by Buddy Compression, for schemes buddy-scaled*: one of --buddy-result, --buddy-ratio, "
"--buddy-study is required"
OPTIONS = {
    "buddy_result": Option(
        str, "replay result of the network's trace, written by 'run TRACE --scheme ideal,buddy --json FILE'", "FILE",
        None, _GROUP,
    ),
    "buddy_ratio": Option(
        float, f"compression ratio of device memory, 1 to {MAX_RATIO:g}; overrides the ratio of the replay result",
        "RATIO", None, _GROUP,
    ),
    "buddy_slowdown": Option(
        float, "fraction by which computations take longer, for example 0.02; overrides the slowdown of the replay "
        "result (default: 0)", "FRACTION", None, _GROUP,
    ),
    "buddy_study": Option(
        str, "ratio and slowdown of the study of transformers, by kind and format of the tensors at the peak: "
        "'pessimistic' or 'optimistic', the ends of their ranges", "END", None, _GROUP,
    ),
}  # fmt: skip


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """The plan of the scaled scheme, on a GPU of the larger memory."""
    ratio, slowdown, source = _scaling(name, options.extra, network)
    module, scaled = _EAGER if network.recorded and _SCALED[name][0] is baseline else _SCALED[name]
    memory_bytes = compressed_capacity(
        options.memory_bytes or machine.memory_bytes, ratio, outside_bytes(network, machine)
    )
    below: Plan = module.plan(network, batch, machine, cost, scaled, replace(options, memory_bytes=memory_bytes))
    text = (
        f"Device memory holds {ratio:.3g}x and computations take {100 * slowdown:.2g} % longer ({source}); one ratio "
        "for all tensors and no contention on the link: optimistic."
    )
    return replace(
        below,
        scheme=name,
        memory_ratio=ratio,
        time_factor=1 + slowdown,
        assumptions={**below.assumptions, "buddy": text},
    )


def _scaling(name: str, extra: Any, network: Network) -> tuple[float, float, str]:
    """Ratio, slowdown, and where they come from.

    Raises
    ------
    BuddysimError
        without a ratio, or where a number is out of range
    """
    selected = values(OPTIONS, extra)
    if all(selected[option] is None for option in REQUIRES_ONE_OF):
        expected = " or ".join(f"{option} ({OPTIONS[option].flag(option)})" for option in REQUIRES_ONE_OF)
        raise BuddysimError(f"scheme {name}: compression ratio of the network is unknown: expected option {expected}")
    ratio, slowdown, source = 1.0, 0.0, "given"
    if selected["buddy_study"] is not None:
        ratio, slowdown, source = _of_study(selected["buddy_study"], network)
    if selected["buddy_result"] is not None:
        ratio, slowdown = _read_result(selected["buddy_result"])
        source = "replayed"
    if selected["buddy_ratio"] is not None:
        ratio, source = float(selected["buddy_ratio"]), "given"
    if selected["buddy_slowdown"] is not None:
        slowdown, source = float(selected["buddy_slowdown"]), "given" if source != "replayed" else "replayed, and given"
    if not 1 <= ratio <= MAX_RATIO:
        raise BuddysimError(f"buddy_ratio {ratio:g}: expected 1 to {MAX_RATIO:g}")
    if not -0.99 <= slowdown < 1000:
        raise BuddysimError(f"buddy_slowdown {slowdown:g}: expected a fraction, for example 0.02")
    return ratio, slowdown, source


def _of_study(end: str, network: Network) -> tuple[float, float, str]:
    """Ratio and slowdown at one end of the study's ranges, and the ranges."""
    from buddysim.training.contents.buddy_study import memory_ratio, peak_amounts, step_slowdown
    from buddysim.training.networks.recorded.network import RecordedNetwork

    if end not in STUDY_ENDS:
        raise BuddysimError(f"buddy_study {end!r}: expected {' or '.join(STUDY_ENDS)}")
    if not isinstance(network, RecordedNetwork):
        raise BuddysimError("buddy_study: the study is of transformers' tensors: expected a recorded network")
    ratio, slowdown = memory_ratio(peak_amounts(network.tape)), step_slowdown()
    text = (
        f"plot buddy-transformers, {end}: memory {ratio.low:.3f} to {ratio.high:.3f}x, kernels "
        f"{100 * slowdown.low:+.1f} to {100 * slowdown.high:+.1f} %"
    )
    pessimistic = end == STUDY_ENDS[0]
    return (ratio.low, slowdown.high, text) if pessimistic else (ratio.high, slowdown.low, text)


def _read_result(path: str) -> tuple[float, float]:
    """Ratio and slowdown of a saved replay; a trace that compression makes faster has a slowdown below 0."""
    from buddysim.base.saved_results import read_results

    results = read_results(path, "'run TRACE --scheme ideal,buddy --json' writes it")
    buddy, ideal = results["buddy"], results["ideal"]
    if not ideal["time_ps"]:
        raise BuddysimError(f"{path}: ideal.time_ps: expected more than 0, got 0")
    return buddy["compression.ratio"], buddy["time_ps"] / ideal["time_ps"] - 1

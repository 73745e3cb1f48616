"""The answer of `train` in a sentence: a network fits as is, or the cheapest scheme that makes it fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buddysim.plotting.memory_kinds import NOT_TENSORS, label_of
from buddysim.report.quantities import format_gib
from buddysim.training.schemes import UNCHANGED

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]

#: Schemes that change nothing about how a framework trains, the first of which is "as is".
AS_IS = ("eager", "baseline-p")
#: Times that agree to this many digits are equal.
_DIGITS = 3


def fit_answer(
    results: Results, simplest_first: Mapping[str, Any], allow_lossy: bool = False, complete: bool = True
) -> str:
    """Return the sentence; "" where no scheme of the results is "as is", or memory is unlimited.

    Parameters
    ----------
    simplest_first : by scheme, its position among schemes that take equally long
    allow_lossy : whether a scheme that changes the training's values may be the answer
    complete : no further schemes follow these
    """
    plain = next((results[name] for name in AS_IS if name in results), None)
    if plain is None or not plain["memory.capacity_bytes"]:
        return ""
    if plain["fits"]:
        return f"fits as is, {_left(plain)} ({_largest(plain)})"
    short = _short(plain)
    name = cheapest(results, simplest_first, allow_lossy)
    if name is not None:
        return f"{short}: {name} makes it fit, {_cost(results[name], plain)}, {_left(results[name])}"
    if any(makes_it_fit(one) for one in results.values()):
        return f"{short}: only lossy schemes make it fit (--allow-lossy)"
    return f"{short}: {'none of these schemes makes it fit' if complete else 'looking for a scheme'}"


def plan_answer(plan: Flat, plain: Flat) -> str:
    """Return the sentence where a plan of `fit` makes fit what does not fit as is."""
    return f"{_short(plain)}: a plan makes it fit, {_cost(plan, plain)}, {_left(plan)}"


def cheapest(results: Results, simplest_first: Mapping[str, Any], allow_lossy: bool = False) -> str | None:
    """Return the scheme that makes it fit with the least time; of equal ones the simplest; None where none does."""
    fitting = [name for name, one in results.items() if makes_it_fit(one) and (allow_lossy or not is_lossy(one))]
    return min(fitting, key=lambda name: (rounded_ms(results[name]), simplest_first[name]), default=None)


def makes_it_fit(result: Flat) -> bool:
    """Whether a scheme has an effect and fits in a GPU of limited memory."""
    return bool(result["fits"] and result["memory.capacity_bytes"] and not result["nothing_to_do"])


def is_lossy(result: Flat) -> bool:
    """Whether a scheme changes the training's values, or nobody says that it doesn't."""
    return bool(result["provenance"].get("accuracy", UNCHANGED) != UNCHANGED)


def rounded_ms(result: Flat) -> float:
    """Time of an iteration to three digits, by which times are equal."""
    return float(f"{result['time_ms']:.{_DIGITS}g}")


def shortfall_bytes(result: Flat) -> int:
    """Bytes of memory that an iteration exceeds; 0 where it fits."""
    return int(result["oom.peak_excess_bytes"] or result["oom.shortfall_bytes"])


def in_use(result: Flat) -> int:
    """Bytes that the GPU holds at the peak, those outside of the allocator too where these are known."""
    held = int(result["memory.peak_bytes"])
    if not result["provenance"].get("network_options"):
        return held
    return held + sum(int(result["memory.by_kind"][kind]) for kind in NOT_TENSORS)


def _short(plain: Flat) -> str:
    return f"does not fit as is, {format_gib(shortfall_bytes(plain))} GiB short ({_largest(plain)})"


def _cost(result: Flat, plain: Flat) -> str:
    """Time in addition, and what crosses the link."""
    slower = 100 * (result["time_ms"] / plain["time_ms"] - 1)
    time = f"{slower:.0f} % slower" if round(slower) > 0 else "no slower"
    return f"{time}, {format_gib(result['offload.bytes'])} GiB to the host" if result["offload.bytes"] else time


def _left(result: Flat) -> str:
    return f"{format_gib(result['memory.capacity_bytes'] - in_use(result))} GiB left"


def _largest(result: Flat) -> str:
    kind, size = max(_tensors(result).items(), key=lambda item: item[1])
    recorded = bool(result["provenance"].get("network_options"))
    return f"largest: {label_of(kind, recorded=recorded)}, {format_gib(size)} GiB"


def _tensors(result: Flat) -> Mapping[str, int]:
    return {kind: size for kind, size in result["memory.by_kind"].items() if kind not in NOT_TENSORS}

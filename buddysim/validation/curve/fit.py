"""Fits a machine to the curves of a card: latencies of plateaus and a bandwidth per level, in closed form.

docs/validation/method.md has the rule; numbers in comments are those of its list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from buddysim.machine import Machine
from buddysim.synthetic.occupancy import CODE
from buddysim.validation.curve.curve_data import CHASE, PER_SM, SHARED, STREAM, MeasuredCurve
from buddysim.validation.curve.metrics import levels, plateau_value, remote_partition
from buddysim.validation.curve.replays import simulate_chase, stream_shape

_FITTED_CHASE = "RRZE-HPC"


@dataclass(frozen=True)
class Fit:
    """The machine that stands for a card, with the parameters fitted to its curves.

    Attributes
    ----------
    machine : the preset at the card's clocks, with the fitted keys
    keys : fitted values, by key, as a machine file has them
    used : x of the points that the fit has used, by the curve's name
    """

    machine: Machine
    keys: Mapping[str, str]
    used: Mapping[str, frozenset[float]]


def fit_machine(machine: Machine, curves: Sequence[MeasuredCurve]) -> Fit:
    """Fit a preset at its card's clocks to the curves of the card."""
    keys: dict[str, str] = {}
    used: dict[str, frozenset[float]] = {}
    l1, l2, memory = levels(machine)
    hz, sms = float(machine.clock.core.hz), machine.sm.count
    latency: float | None = None
    if chased := _first(curves, CHASE, _FITTED_CHASE):
        for number, (level, key) in enumerate(((l1, "l1"), (l2, "l2"), (memory, "dram"))):  # 1, 2, 3
            value = plateau_value(list(zip(chased.x, chased.y, strict=True)), level)
            if value is None:
                continue
            used[chased.name] = used.get(chased.name, frozenset()) | {x for x in chased.x if level.has(x)}
            if number < 2:
                keys[f"{key}.load_to_use"] = f"{value:.1f} core_cycles"
            else:
                latency = value / hz * 1e9
                keys["dram.load_to_use"] = f"{latency:.1f} ns"
        remote = plateau_value(list(zip(chased.x, chased.y, strict=True)), remote_partition(machine))
        if machine.l2.partitions == 2 and remote is not None and latency is not None:  # 7
            local = machine.ps(machine.with_overrides(keys).l2.load_to_use) * hz / 1e12
            used[chased.name] |= {x for x in chased.x if remote_partition(machine).has(x)}
            keys["l2.partition_latency"] = f"{max(0.0, 2 * (2 * remote - local - latency * hz / 1e9)):.0f} core_cycles"
        if latency is not None:
            above = simulate_chase(machine.with_overrides(keys), 4 * machine.l2.size, 128) / hz * 1e9 - latency
            keys["dram.load_to_use"] = f"{latency - above:.1f} ns"
    if loads := _first(curves, PER_SM):  # 4
        value = plateau_value(list(zip(loads.x, loads.y, strict=True)), l1)
        if value is not None:
            used[loads.name] = frozenset(x for x in loads.x if l1.has(x))
            keys["l1.lines_per_cycle"] = _lines_per_cycle(machine, round(value * 1e9 / (sms * hz * 128)))
    if wide := _first(curves, SHARED) or loads:  # 5
        value = plateau_value(list(zip(wide.x, wide.y, strict=True)), l2)
        if value is not None:
            used[wide.name] = used.get(wide.name, frozenset()) | {x for x in wide.x if l2.has(x)}
            keys["crossbar.reply_bandwidth"] = f"{value * 1e9 / (sms * hz):.1f} B/core_cycle"
    if read := _first(curves, f"{STREAM}read"):  # 6
        blocks, threads = stream_shape(machine, read, read.x[0])
        wave_ns = blocks * threads * 8 * sms / read.y[0]
        latency_ns = latency
        if latency_ns is None:
            latency_ns = simulate_chase(machine.with_overrides(keys), 4 * machine.l2.size, 128) / hz * 1e9
        used[read.name] = frozenset(read.x[:1])
        code = sum(CODE[read.code]["read"]) if read.code in CODE else 0
        keys["kernel.block_overhead"] = f"{max(0.0, (wave_ns - latency_ns) * hz / 1e9 - code):.0f} core_cycles"
    return Fit(machine.with_overrides(keys), keys, used)


def _lines_per_cycle(machine: Machine, lines: int) -> str:
    """Return the L1's lines per cycle nearest to a measured number; its own where its banks determine them."""
    measured = machine.l1.model_copy(update={"lines_per_cycle": min(max(1, lines), 16)})
    fits = not list(machine.policies()["L1 banking"].misfits(machine.model_copy(update={"l1": measured})))
    return str((measured if fits else machine.l1).lines_per_cycle)


def _first(curves: Sequence[MeasuredCurve], benchmark: str, source: str | None = None) -> MeasuredCurve | None:
    """Return a curve of a benchmark, from a source if it has one; None if there is none."""
    matches = [curve for curve in curves if curve.benchmark == benchmark]
    return next((curve for curve in matches if curve.source == source), matches[0] if matches else None)

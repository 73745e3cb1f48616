"""A machine file from measurements: a preset whose values are replaced by those of the GPU and its curves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import median

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.measure.benchmarks import HOST_CHASE, TO_DEVICE, TO_HOST
from buddysim.measure.curve_table import card_name
from buddysim.measure.gpu import GpuProperties
from buddysim.validation.curve.curve_data import MeasuredCurve
from buddysim.validation.curve.fit import fit_machine
from buddysim.validation.curve.replays import simulate_host_chase

_MAX_PIN_ERROR = 0.01


def nearest_preset(name: str) -> str:
    """Return the preset of a GPU's model, by its name.

    Raises
    ------
    BuddysimError
            a GPU whose name contains no preset's name
    """
    matches = [preset for preset in Machine.presets() if _pattern(_model(preset)).search(name.lower())]
    if not matches:
        raise BuddysimError(
            f"{name}: no preset is of this model: expected --like and the most similar one of "
            f"{', '.join(Machine.presets())}"
        )
    return max(matches, key=lambda preset: (_pattern(preset).search(name.lower()) is not None, len(_model(preset))))


def _model(preset: str) -> str:
    """Return a preset's name without the variant of a model that has several: a100-40 is an A100, h100-sxm an H100."""
    return re.sub(r"(?<=[a-z][0-9]00)-(sxm|pcie|[0-9]+)$", "", preset)


def _pattern(preset: str) -> re.Pattern[str]:
    """Return a pattern of a preset's name as a word of a GPU's name: gtx-1080-ti is GTX 1080 Ti."""
    parts = re.findall(r"[a-z]+|[0-9]+", preset)
    return re.compile(rf"(?<![a-z0-9]){'[ -]?'.join(parts)}(?![a-z0-9])")


def fit_machine_file(
    about: GpuProperties, clock_mhz: float, curves: Sequence[MeasuredCurve], like: str
) -> tuple[Machine, list[str]]:
    """Return the machine, and a line for each key that keeps the preset's value although it was requested.

    Parameters
    ----------
    about : properties that CUDA reports
    clock_mhz : measured clock of the SMs
    curves : all measured curves
    like : the preset whose values stay where nothing was measured

    Notes
    -----
    Latencies and bandwidths are fitted by the method of docs/validation/method.md; the link, to a chase and to copies.
    """
    machine, unchanged = Machine.load(like), []
    by_cuda = f"CUDA, properties of {about.name}"
    measured = f"measured on {about.name} at {clock_mhz:g} MHz by 'buddysim machines measure'"
    for keys, source in [({"clock.core": f"{clock_mhz:g} MHz"}, measured), *_keys_of_properties(about, by_cuda)]:
        try:
            machine = machine.with_overrides(keys, source=source)
        except BuddysimError as error:
            unchanged.append(f"{', '.join(keys)} stay as those of {like}: {error}")
    pins = 2000 * about.figures.get("memoryClockRate", 0) * about.figures.get("memoryBusWidth", 0) / 8
    if pins and abs(machine.dram_bytes_per_s / pins - 1) > _MAX_PIN_ERROR:
        unchanged.append(
            f"dram: channels stay as those of {like}, {machine.dram_bytes_per_s / 1e9:.0f} GB/s; by its properties the "
            f"GPU has {pins / 1e9:.0f} GB/s"
        )
    machine = machine.with_overrides(fit_machine(machine, curves).keys, source=measured)
    machine = machine.with_overrides(_link(machine, {curve.benchmark: curve for curve in curves}), source=measured)
    described = machine.renamed(card_name(about.name), f"{about.name}, measured; all else is that of {like}")
    return described, unchanged


def _keys_of_properties(about: GpuProperties, source: str) -> list[tuple[Mapping[str, object], str]]:
    """Return the keys that follow from CUDA's properties, dependent keys in one group."""
    known = about.figures
    groups: list[dict[str, object]] = [
        {"sm.count": known["multiProcessorCount"]},
        {
            "sm.threads": known["maxThreadsPerMultiProcessor"],
            "sm.warps": known["maxThreadsPerMultiProcessor"] // 32,
            "sm.registers": known["regsPerMultiprocessor"],
            "sm.shared_memory": f"{known['sharedMemPerMultiprocessor']} B",
        },
        {"l2.size": f"{known['l2CacheSize']} B"},
        {"dram.capacity": f"{known['totalGlobalMem'] // 2**20} MiB"},
    ]
    if known.get("memoryClockRate"):
        groups.append({"clock.dram": f"{known['memoryClockRate']} kHz"})
    return [(group, source) for group in groups]


def _link(machine: Machine, curves: Mapping[str, MeasuredCurve]) -> dict[str, object]:
    """Return the keys of the host link: the slower direction's best copy, and the latency of a chase in host memory."""
    keys: dict[str, object] = {}
    copies = [max(curves[name].y) for name in (TO_HOST, TO_DEVICE) if name in curves]
    if copies:
        keys["link.bandwidth"] = f"{min(copies):.4g} GB/s"
    if HOST_CHASE in curves:
        ns = median(curves[HOST_CHASE].y) / float(machine.clock.core.hz) * 1e9
        replayed = machine.with_overrides({**keys, "link.load_to_use": f"{ns:.1f} ns"})
        above = simulate_host_chase(replayed) / float(machine.clock.core.hz) * 1e9 - ns
        keys["link.load_to_use"] = f"{max(0.0, ns - above):.1f} ns"
    return keys

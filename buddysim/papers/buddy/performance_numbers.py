"""Performance of the workloads and the paper: links, bandwidth compression, Unified Memory (Figs. 5b, 11, 12)."""

from __future__ import annotations

from collections.abc import Iterable

from buddysim.papers.buddy.buddy_study import BuddyStudy
from buddysim.papers.buddy.digitized_figures import workloads
from buddysim.papers.buddy.means import GROUPS, geometric, lacking_text, values_by_workload
from buddysim.papers.buddy.why_not_reproduced import bandwidth_pressure, buddy_pressure
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import Result

BASELINE_GBS = 150
#: Links of Fig. 11, and one so fast that it takes no time.
LINKS_GBS = (50, 100, 150, 200, 1_000_000)
BANDWIDTH = "bandwidth-compression"
#: The programs under Unified Memory: the text names none.
MANAGED = ("ilbdc", "palm", "sp")
OVERSUBSCRIBED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
MANAGED_GBS = 75
#: Why the paper's programs are slower under bandwidth compression.
_PAPER_CAUSES = {
    "cg": "the paper's needs one sector of most lines; in buddysim's, 32 work-items read a row side by side",
    "ilbdc": "the paper's needs one sector of most lines; in buddysim's, list neighbours are memory neighbours",
    "lulesh": "the paper's waits for (de)compression, which costs the simulated run less than the reads that it saves",
}
_COPIES = (
    "; the paper has memcpys between host and device: they take no time in the model, and the trace's launches, two "
    "half sweeps on the finest level, have none"
)
SLOW = 0.03
KIB = 1024
_SIZES, _LINES = "1024,2048,4096,8192,16384,32768,65536", "32,128"


def link_text(gbs: int) -> str:
    """``50 GB/s``."""
    return f"{gbs} GB/s" if gbs < LINKS_GBS[-1] else "no limit"


def _at(
    study: BuddyStudy, name: str, scheme: str, gbs: int, same_input: bool = False, oversubscription: float | None = None
) -> Result | None:
    settings: dict[str, object] = {"link.bandwidth": f"{gbs} GB/s"}
    if oversubscription is not None:
        settings["um.oversubscription"] = oversubscription
    return study.replay(name, scheme, same_input, **settings)


def baseline_ps(study: BuddyStudy, name: str) -> int | None:
    """The time with unlimited memory and a link of 150 GB/s."""
    result = _at(study, name, "ideal", BASELINE_GBS)
    return None if result is None else int(result["time_ps"])


def performance(
    study: BuddyStudy, name: str, scheme: str, gbs: int = BASELINE_GBS, same_input: bool = False
) -> float | None:
    """The baseline's time over a scheme's."""
    below, result = baseline_ps(study, name), _at(study, name, scheme, gbs, same_input)
    return None if below is None or result is None else below / int(result["time_ps"])


def performances(study: BuddyStudy, name: str) -> dict[str, float | None]:
    """Performance of bandwidth compression, and of Buddy Compression with each link."""
    by_system = {BANDWIDTH: performance(study, name, BANDWIDTH)}
    return by_system | {link_text(gbs): performance(study, name, "buddy", gbs) for gbs in LINKS_GBS}


def hit_rates(study: BuddyStudy, name: str, line: int = 32) -> dict[int, float | None] | None:
    """Hit rate of the metadata cache by bytes per slice."""
    rows = study.analysis_rows(name, "metadata", analysis_metadata_sizes=_SIZES, analysis_metadata_lines=_LINES)
    if rows is None:
        return None
    return {row["bytes_per_slice"]: row["hit_fraction"] for row in rows if row["line_bytes"] == line}


def managed_slowdowns(study: BuddyStudy, name: str) -> dict[str, float | None]:
    """Time over that with unlimited memory: Unified Memory by oversubscription, all pinned on the host, Buddy."""
    below = _at(study, name, "ideal", MANAGED_GBS)

    def slowdown(result: Result | None) -> float | None:
        return None if below is None or result is None else int(result["time_ps"]) / int(below["time_ps"])

    slowdowns = {
        f"um {fraction:.0%}": slowdown(_at(study, name, "unified-memory", MANAGED_GBS, oversubscription=fraction))
        for fraction in OVERSUBSCRIBED
    }
    slowdowns["host"] = slowdown(_at(study, name, "pinned-host", MANAGED_GBS))
    below = _at(study, name, "ideal", BASELINE_GBS)
    slowdowns["buddy"] = slowdown(_at(study, name, "buddy", 50))
    return slowdowns


# -- numbers ----------------------------------------------------------------------------------------------------------

_NAMES = {"hpc": "HPC", "dl": "DL", "all": "all"}


def _mean_performance(study: BuddyStudy, group: str, scheme: str, gbs: int) -> tuple[float | None, str]:
    by_workload = values_by_workload(study, group, lambda name: performance(study, name, scheme, gbs))
    each = ", ".join(f"{name} {one:.3f}" for name, one in by_workload.items() if one is not None)
    same = geometric(
        values_by_workload(study, group, lambda name: performance(study, name, scheme, gbs, True)).values()
    )
    leak = f"targets of the same input: {same:.3f}" if same is not None and scheme == "buddy" else ""
    return geometric(by_workload.values()), "; ".join(text for text in (each, leak, lacking_text(by_workload)) if text)


def _pressure(study: BuddyStudy, names: Iterable[str], scheme: str, gbs: int) -> str:
    """Return the bottlenecks of these workloads' runs under a scheme; empty if one is not stored."""
    runs = {name: _at(study, name, scheme, gbs) for name in names}
    ideal = {name: _at(study, name, "ideal", BASELINE_GBS) for name in runs}
    known = {name: result for name, result in runs.items() if result is not None}
    below = {name: result for name, result in ideal.items() if result is not None}
    if not runs or len(known) < len(runs) or len(below) < len(runs):
        return ""
    return (buddy_pressure if scheme == "buddy" else bandwidth_pressure)(below, known)


@simulates("buddy-150-hpc", "buddy-150-dl", "buddy-50-all")
def slowdowns(study: BuddyStudy, id: str) -> SimulatedValue:
    _, gbs, group = id.split("-")
    mean, note = _mean_performance(study, _NAMES[group], "buddy", int(gbs))
    cause = _pressure(study, study.names(GROUPS[_NAMES[group]]), "buddy", int(gbs))
    return SimulatedValue(None if mean is None else 100 * (1 - mean), note, cause)


@simulates("buddy-200-all", "buddy-bandwidth-all")
def speedups(study: BuddyStudy, id: str) -> SimulatedValue:
    scheme, gbs = ("buddy", 200) if id == "buddy-200-all" else (BANDWIDTH, BASELINE_GBS)
    mean, note = _mean_performance(study, "all", scheme, gbs)
    return SimulatedValue(
        None if mean is None else 100 * (mean - 1), note, _pressure(study, study.names(), scheme, gbs)
    )


@simulates("buddy-alexnet-150", "buddy-alexnet-50")
def alexnet(study: BuddyStudy, id: str) -> SimulatedValue:
    gbs = int(id.rpartition("-")[2])
    relative = performance(study, "alexnet", "buddy", gbs)
    if relative is None:
        return SimulatedValue(None, note="not stored")
    return SimulatedValue(100 * (1 - relative), cause=_pressure(study, ("alexnet",), "buddy", gbs))


@simulates("buddy-bandwidth-dl")
def bandwidth_gains(study: BuddyStudy) -> SimulatedValue:
    gains = {group: _mean_performance(study, group, BANDWIDTH, BASELINE_GBS)[0] for group in ("DL", "HPC")}
    dl, hpc = gains["DL"], gains["HPC"]
    if dl is None or hpc is None:
        return SimulatedValue(None, note="not stored")
    return SimulatedValue(
        "mostly DL" if dl > hpc else "mostly HPC",
        f"DL {dl:.3f}, HPC {hpc:.3f}",
        _pressure(study, study.names(), BANDWIDTH, BASELINE_GBS),
    )


@simulates("buddy-bandwidth-cg", "buddy-bandwidth-ilbdc", "buddy-bandwidth-lulesh")
def bandwidth_of(study: BuddyStudy, id: str) -> SimulatedValue:
    relative = performance(study, id.rpartition("-")[2], BANDWIDTH)
    if relative is None:
        return SimulatedValue(None, note="not stored")
    return SimulatedValue("slower" if relative < 1 else "faster", f"performance {relative:.3f}", _read_text(study, id))


def _read_text(study: BuddyStudy, id: str) -> str:
    """Return how bandwidth compression changes device memory reads, and the sectors per line that fills request."""
    name = id.rpartition("-")[2]
    ideal, compressed = (_at(study, name, scheme, BASELINE_GBS) for scheme in ("ideal", BANDWIDTH))
    if ideal is None or compressed is None:
        return ""
    read = 100 * (compressed["device.read_bytes"] / ideal["device.read_bytes"] - 1)
    over = 100 * compressed["device.overfetch_bytes"] / compressed["device.read_bytes"]
    return (
        f"fills request {ideal['l2.read_sector_misses'] / ideal['l2.fills']:.1f} of a line's 4 sectors on average, "
        f"device memory reads change by {read:+.0f} %, with {over:.1f} % over-fetch; device memory is busy for "
        f"{100 * ideal['utilization.dram_channels']:.0f} % of ideal's time; {_PAPER_CAUSES[name]}"
    )


@simulates("buddy-lower-links")
def lower_links(study: BuddyStudy) -> SimulatedValue:
    means = {gbs: _mean_performance(study, "all", "buddy", gbs)[0] for gbs in (50, 100, 150)}
    if None in means.values():
        return SimulatedValue(None, note="not stored")
    text = "slower" if all(mean is not None and mean < 1 for mean in means.values()) else "not at each slower"
    return SimulatedValue(
        text,
        ", ".join(f"{gbs} GB/s {mean:.3f}" for gbs, mean in means.items()),
        _pressure(study, study.names(), "buddy", 50),
    )


@simulates("buddy-ep-link", "buddy-seismic-link", "buddy-hpgmg-link")
def link_sensitivity(study: BuddyStudy, id: str) -> SimulatedValue:
    name = id.split("-")[1]
    fast, slow = (performance(study, name, "buddy", gbs) for gbs in (150, 50))
    if fast is None or slow is None:
        return SimulatedValue(None, note="not stored")
    text = "slower" if slow < (1 - SLOW) * fast else "no slower"
    return SimulatedValue(
        text,
        f"performance {fast:.3f} at 150 GB/s, {slow:.3f} at 50 GB/s",
        f"{_pressure(study, (name,), 'buddy', 50)}{_COPIES if name == 'hpgmg' else ''}",
    )


@simulates("buddy-metadata-hits")
def metadata_hits(study: BuddyStudy) -> SimulatedValue:
    rates = _rates(study)
    if len(rates) < len(study.names()) or not rates:
        return SimulatedValue(None, note=f"{len(rates)} of {len(study.names())} stored")
    high = sum(rate is not None and rate > 0.9 for rate in rates.values())
    note = ", ".join(f"{name} {_rate_text(rate)}" for name, rate in rates.items())
    return SimulatedValue("most high" if 2 * high > len(rates) else "few high", note)


@simulates("buddy-palm-metadata", "buddy-seismic-metadata")
def misses(study: BuddyStudy, id: str) -> SimulatedValue:
    name, rates = id.split("-")[1], _rates(study)
    speed = performance(study, name, "buddy")
    if len(rates) < len(workloads()) or speed is None:
        return SimulatedValue(None, note=f"{len(rates)} of {len(workloads())} stored")
    looked_up = {one: rate for one, rate in rates.items() if rate is not None}
    fewest = sorted(looked_up, key=lambda one: looked_up[one])[: len(rates) // 4]
    text = "metadata" if name in fewest and speed < 1 else "not metadata"
    rate = _rate_text(rates[name])
    return SimulatedValue(text, f"hit rate: {rate}, performance {speed:.3f}; fewest hits: {', '.join(fewest)}")


def _rates(study: BuddyStudy) -> dict[str, float | None]:
    """Return hit rates at 4 KB per slice of the stored runs; None without compressed entries, hence without lookups."""
    hit_rates_by_name = {}
    for name in study.names():
        rates = hit_rates(study, name)
        if rates is not None:
            hit_rates_by_name[name] = rates[4 * KIB]
    return hit_rates_by_name


def _rate_text(rate: float | None) -> str:
    return "no look-ups" if rate is None else f"{100 * rate:.1f} %"


@simulates("buddy-um-pinned")
def managed_versus_pinned(study: BuddyStudy) -> SimulatedValue:
    worse, points = [], 0
    for name in MANAGED:
        slowdowns = managed_slowdowns(study, name)
        host = slowdowns["host"]
        for key, slowdown in slowdowns.items():
            if key.startswith("um ") and key != "um 0%" and slowdown is not None and host is not None:
                points += 1
                worse += [f"{name} {key.removeprefix('um ')}"] if slowdown > host else []
    if points < len(MANAGED) * (len(OVERSUBSCRIBED) - 1):
        return SimulatedValue(None, note="not stored")
    text = "often worse" if 2 * len(worse) > points else "seldom worse"
    return SimulatedValue(
        text, f"{len(worse)} of {points} points: {', '.join(worse)}", "a model of the driver, not the hardware"
    )


@simulates("buddy-um-buddy")
def buddy_of_managed(study: BuddyStudy) -> SimulatedValue:
    by_workload = {name: managed_slowdowns(study, name)["buddy"] for name in MANAGED}
    known = {name: slowdown for name, slowdown in by_workload.items() if slowdown is not None}
    if len(known) < len(MANAGED):
        return SimulatedValue(None, note=lacking_text(by_workload))
    return SimulatedValue(max(known.values()), ", ".join(f"{name} {slowdown:.2f}" for name, slowdown in known.items()))

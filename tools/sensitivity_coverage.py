"""Compare the sensitivity ranges of traces with random changes: `python -m tools.sensitivity_coverage [TRACE ...]`.

Each latency and the compute gaps change by up to 2.5 %, at random, and the seed, together, for all schemes alike. For
each trace and scheme the tool prints how many of the changed speedups lie in the range that `run` shows, and the width
of the range over that of the central 95 % of them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

from buddysim.machine import Machine
from buddysim.replay.scheme_results import slowdown_range
from buddysim.replay.schemes import BASELINE
from buddysim.replay.sensitivity import ALL, UNCHANGED, Perturbation
from buddysim.replay.simulation import OpenTraces, Simulation

ROOT = Path(__file__).parents[1]
SCHEMES = ("bandwidth-compression", "buddy")
STEP = 40_000  # of 2.5 %, in millionths of the whole


def random_changes(draws: int, seed: str, *, synthetic_sizes: bool) -> list[Perturbation]:
    """Random changes of everything within 2.5 %."""
    draw = random.Random(seed)

    def factor() -> Fraction:
        return 1 + Fraction(draw.randrange(-25_000, 25_001), 1_000_000)

    changes = []
    for number in range(draws):
        factors = tuple(factor() for _ in range(4))
        changes.append(Perturbation(factors, factor(), 1000 + number if synthetic_sizes else 0))
    return changes


def times(simulation: Simulation, machine: Machine, scheme: str, changes: Sequence[Perturbation]) -> list[int]:
    """Simulated time under each change (ps)."""

    def one(change: Perturbation) -> int:
        return int(simulation._run(change.of(machine), scheme, change, None, None).counters["time_ps"])

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, changes))


def measure(path: Path, machine: Machine, draws: int) -> dict[str, Any]:
    """Times of a trace by scheme: unchanged, with the changes that `run` makes, and with random ones."""
    with OpenTraces() as files:
        simulation = Simulation(files, path)
        plan = simulation.plan(ALL)
        synthetic = any(change.seed for change in plan.small)
        changes = [UNCHANGED, *plan.small, *random_changes(draws, path.stem, synthetic_sizes=synthetic)]
        own = 1 + len(plan.small)
        by_scheme = {scheme: times(simulation, machine, scheme, changes) for scheme in (BASELINE, *SCHEMES)}
    return {"own": own, "times": by_scheme}


def report(trace: str, measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Coverage and relative width of each scheme's range."""
    rows = []
    own, by_scheme = measured["own"], measured["times"]
    for scheme in SCHEMES:
        ratios = [one / base for one, base in zip(by_scheme[scheme], by_scheme[BASELINE], strict=True)]
        low, high = slowdown_range(ratios[0], ratios[1:own])
        changed = sorted(ratios[own:])
        cut = len(changed) // 40
        central = changed[len(changed) - 1 - cut] - changed[cut]
        inside = sum(low <= ratio <= high for ratio in changed)
        rows.append(
            {
                "trace": trace,
                "scheme": scheme,
                "coverage": inside / len(changed),
                "width": (high - low) / central if central else 1.0,
                "range": [low, high],
                "central": [changed[cut], changed[len(changed) - 1 - cut]],
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", metavar="TRACE", type=Path, nargs="*", help="traces (default: all in traces/)")
    parser.add_argument("--machine", default="p100-nvlink2", help="machine (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=200, help="random changes (default: %(default)s)")
    parser.add_argument("--times", type=Path, help="a file that keeps the times of traces, so that they run once")
    args = parser.parse_args()
    stored = json.loads(args.times.read_text()) if args.times and args.times.exists() else {}
    failed = False
    for path in args.traces or sorted((ROOT / "traces").glob("*.bin")):
        if path.stem not in stored:
            stored[path.stem] = measure(path, Machine.load(args.machine), args.draws)
            if args.times:
                args.times.write_text(json.dumps(stored))
        for row in report(path.stem, stored[path.stem]):
            fails = row["coverage"] < 0.95 or row["width"] > 1.5
            failed |= fails
            low, high = row["range"]
            print(
                f"{row['trace']:20} {row['scheme']:22} {1 / high:.4f}x - {1 / low:.4f}x  "
                f"{100 * row['coverage']:5.1f} % inside, {row['width']:.2f} of the central 95 %{'  FAILS' * fails}",
                flush=True,
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())

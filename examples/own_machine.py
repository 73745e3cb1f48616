"""A machine of your own: a preset with some figures changed, written as a machine file to go on from."""

from pathlib import Path

import buddysim
from buddysim.trace.shipped import shipped_trace

machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"l2.size": "1 MiB"})
Path("out").mkdir(exist_ok=True)
Path("out/small-l2.toml").write_text(machine.to_toml(), encoding="utf-8")

trace = shipped_trace("jacobi2d").path
for each in ("p100-nvlink2", "out/small-l2.toml"):
    result = buddysim.simulate(trace, each, "ideal")
    hits = result.counters["l2.sector_hits"] / result.counters["l2.sector_accesses"]
    print(f"{each}: {result.counters['time_ps'] / 1e6:,.1f} us, {hits:.1%} of the L2's sectors hit")

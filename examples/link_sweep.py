"""What a slower link costs Buddy Compression, on a real trace."""

import buddysim
from buddysim.trace.shipped import shipped_trace

trace = shipped_trace("bitonic-sort").path
for link in (25, 50, 150):
    machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"link.bandwidth": f"{link} GB/s"})
    results = buddysim.simulate_schemes(trace, machine, ("buddy", "ideal"), baseline_set={"link.bandwidth": "150 GB/s"})
    buddy = results["buddy"]
    print(
        f"{link:4} GB/s: time {buddy.slowdown['ratio']:.3f} of the baseline's, "
        f"{buddy.counters['buddy.access_fraction']:.1%} buddy accesses, ratio {buddy.counters['compression.ratio']:.2f}"
    )

"""What a slower link costs Buddy Compression, on a real trace whose entries overflow."""

import buddysim
from buddysim.trace.shipped import shipped_trace

trace = shipped_trace("kv-cache").path
for link in (50, 75, 150, 300):
    machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"link.bandwidth": f"{link} GB/s"})
    result = buddysim.simulate_schemes(trace, machine, ("buddy", "ideal"))["buddy"]
    print(
        f"{link:4} GB/s: {result.slowdown['ratio']:.2f} times the time of ideal, "
        f"{result.counters['buddy.access_fraction']:.1%} buddy accesses, "
        f"link {result.utilization['link_read']:.0%} busy"
    )

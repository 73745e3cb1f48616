"""One build of a paired benchmark, run by that build's Python: it imports nothing of this build.

For each line read, ``stream`` or ``random``, it simulates that benchmark once and prints as JSON the nanoseconds of
processor time per memory instruction or line, without opening the trace and set-up.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import buddysim
from buddysim.buddy import profile

try:
    from buddysim.synthetic import make_trace
except ImportError:  # older builds
    from buddysim.workloads import make_trace

COUNTED = {"stream": "memory_instructions", "random": "line_accesses"}


def main() -> None:
    folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
    traces = {}
    for workload, parameters in settings.items():
        path = folder / f"{workload}.bin"
        make_trace(workload, path, parameters)
        traces[workload] = buddysim.open_trace(path)
    targets = {workload: profile(trace).targets for workload, trace in traces.items()}
    print(json.dumps(buddysim.__file__), flush=True)
    for line in sys.stdin:
        workload = line.strip()
        wall, processor = time.perf_counter(), time.process_time()
        result = buddysim.simulate(traces[workload], scheme="buddy", targets=targets[workload])
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        per_s = result.speed[f"{COUNTED[workload]}_per_s"]
        print(json.dumps({"per_ns": 1e9 / per_s * processor / wall}), flush=True)


main()

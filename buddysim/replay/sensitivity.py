"""How much a result depends on gaps that the trace had to assume: the same runs with gaps halved and doubled."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from fractions import Fraction

from buddysim.replay.result import ReplayResult

GAP_SCALES = {"half_gaps_time_ps": Fraction(1, 2), "double_gaps_time_ps": Fraction(2)}
REPORT_EVERY_S = 0.2

Progress = Callable[[int, int], None]
RunOne = Callable[[str, Fraction, Progress], ReplayResult]


def with_gap_sensitivity(
    results: Mapping[str, ReplayResult], run_one: RunOne, progress: Progress | None = None
) -> dict[str, ReplayResult]:
    """The results, completed by their times with gaps halved and doubled.

    The runs are independent and go on in threads, one per processor.

    Parameters
    ----------
    results : by scheme name, with the trace's own gaps
    run_one : runs a scheme with a factor on all gaps, reporting to the progress function it gets
    progress : called with the memory instructions done and in all, of all these runs together
    """
    runs = [(scheme, name) for scheme in results for name in GAP_SCALES]
    each = max((result.counters["memory_instructions"] for result in results.values()), default=0)
    done = dict.fromkeys(runs, 0)
    stopping = threading.Event()

    def one(run: tuple[str, str]) -> int:
        def report(instructions: int, _: int) -> None:
            done[run] = instructions
            if stopping.is_set():
                raise KeyboardInterrupt

        scheme, name = run
        return int(run_one(scheme, GAP_SCALES[name], report).counters["time_ps"])

    with ThreadPoolExecutor(max_workers=min(len(runs), os.cpu_count() or 1) or 1) as pool:
        futures = {run: pool.submit(one, run) for run in runs}
        try:
            waiting = set(futures.values())
            while waiting:
                ended, waiting = wait(waiting, timeout=REPORT_EVERY_S, return_when=FIRST_EXCEPTION)
                for future in ended:
                    future.result()
                if progress is not None:
                    progress(sum(done.values()), each * len(runs))
            times = {run: future.result() for run, future in futures.items()}
        except BaseException:
            stopping.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return {
        scheme: replace(result, sensitivity={name: times[scheme, name] for name in GAP_SCALES})
        for scheme, result in results.items()
    }

"""Processor time of each test with the processes that it started: kept from run to run, and limited for quick tests.

`python -m tests.processor_time [N]` prints the N longest tests of the runs so far, those marked slow apart.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

#: Seconds of each test at its last run, in pytest's cache.
KEY = "buddysim/processor_s"
FILE = Path(__file__).parents[1] / ".pytest_cache" / "v" / KEY
#: A run with this variable fails where a test that is not marked slow takes more, without fixtures: many share one. The
#: workflow of the tests sets it; a loaded machine, which doubles processor time, does not.
LIMIT = "LIMIT_QUICK_TESTS"
MAX_QUICK_S = 4.0


def processor_s() -> float:
    """Return the processor time of this process and of the processes that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class ProcessorTime:
    """Hooks of pytest: a worker measures, and the process that hears of every test keeps what was measured."""

    def __init__(self, config: pytest.Config) -> None:
        self.cache: pytest.Cache | None = getattr(config, "cache", None)
        self.measured: dict[str, float] = {}
        self.over_limit: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self.start_s, self.call_s = processor_s(), 0.0
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        start_s = processor_s()
        try:
            return (yield)
        finally:
            self.call_s = processor_s() - start_s

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((KEY, [processor_s() - self.start_s, self.call_s]))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        both_s: Any = dict(report.user_properties).get(KEY) if report.when == "teardown" else None
        if both_s is not None:
            whole_s, call_s = both_s
            name = f"{report.nodeid} (slow)" if "slow" in report.keywords else report.nodeid
            self.measured[name] = round(whole_s, 2)
            if call_s > MAX_QUICK_S and name == report.nodeid:
                self.over_limit.append(f"{report.nodeid}: {call_s:.1f} s of processor time")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.cache is not None and not hasattr(session.config, "workerinput"):
            self.cache.set(KEY, {**self.cache.get(KEY, {}), **self.measured})
        if self.over_limit and os.environ.get(LIMIT) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.over_limit:
            terminalreporter.section(f"quick tests over {MAX_QUICK_S:.0f} s: make them faster, or mark them slow")
            for line in self.over_limit:
                terminalreporter.write_line(line)


def main(arguments: Sequence[str]) -> None:
    seconds = json.loads(FILE.read_text(encoding="utf-8"))
    for is_slow, title in ((False, "quick"), (True, "slow")):
        tests = {name: taken for name, taken in seconds.items() if name.endswith(" (slow)") == is_slow}
        print(f"{len(tests)} {title} tests: {sum(tests.values()):.0f} s")
        for name in sorted(tests, key=tests.__getitem__, reverse=True)[: int(arguments[0]) if arguments else 50]:
            print(f"{tests[name]:8.2f} {name.removesuffix(' (slow)')}")


if __name__ == "__main__":
    main(sys.argv[1:])

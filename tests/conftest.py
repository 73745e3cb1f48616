"""Settings of every test."""

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from buddysim.base import plugin_modules
from tests.noted_reads import NotedReads
from tests.processor_time import ProcessorTime

# Assertions are rewritten at a test file's first import alone, even where PYTHONDONTWRITEBYTECODE is set.
sys.dont_write_bytecode = False

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Screens have no width, as in a pipe, but where a test sets one (xdist sets it in its workers).
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")  # readline, which pytest imports, sets it past Python, for the programs that tests start

# A shell's background job ignores Ctrl-C, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


#: The line of a file whose tests are all slow.
ALL_SLOW = re.compile(r"^pytestmark = .*\bpytest\.mark\.slow\b", re.MULTILINE)

# Reports of unexpected errors, of this process and of every program that a test starts: none may remain.
_STATE = Path(tempfile.mkdtemp(prefix="buddysim-state-"))
os.environ["XDG_STATE_HOME"] = str(_STATE)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark of a test that causes an unexpected error by intent; measure and note."""
    config.pluginmanager.register(ProcessorTime(config))
    config.pluginmanager.register(NotedReads(config))
    config.addinivalue_line("markers", "unexpected: causes an unexpected error (exit code 70) by intent")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file whose tests are all slow, which may import PyTorch, where slow tests don't run."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if not is_test or config.option.markexpr != "not slow":
        return None
    return True if ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) else None


#: Where slow tests don't run, a property test tries this part of its examples, though no fewer than so many.
QUICK_EXAMPLES, MIN_EXAMPLES = 0.4, 25


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave most examples of property tests to runs with slow tests."""
    if config.option.markexpr != "not slow":
        return
    for function in {item.function for item in items if isinstance(item, pytest.Function)}:
        own = getattr(function, "_hypothesis_internal_use_settings", None)
        if own is not None and own.max_examples > MIN_EXAMPLES:
            fewer = max(MIN_EXAMPLES, int(own.max_examples * QUICK_EXAMPLES))
            function._hypothesis_internal_use_settings = settings(own, max_examples=fewer)


def pytest_collection_finish() -> None:
    """Spare collections of garbage the test functions and all modules, which stay to the end."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a test that fails when it fails: a run that is cut off later still says which."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        lines = report.longreprtext.rstrip().split("\n")
        cause = next((line.removeprefix("E").strip() for line in lines if line.startswith("E ")), lines[-1])
        sys.__stdout__.write(f"\nFAILED {report.nodeid} ({report.when}, {report.duration:.0f} s): {cause}\n")
        sys.__stdout__.flush()


def pytest_unconfigure() -> None:
    """Remove the folder of reports."""
    shutil.rmtree(_STATE, ignore_errors=True)


@pytest.fixture(autouse=True)
def _no_unexpected_error(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which any entry, of any process, ended with exit code 70."""
    yield
    reports = sorted((_STATE / "buddysim").glob("*"))
    texts = [report.read_text(encoding="utf-8", errors="replace") for report in reports]
    for report in reports:
        report.unlink(missing_ok=True)
    if texts and request.node.get_closest_marker("unexpected") is None:
        pytest.fail("an unexpected error, exit code 70:\n" + "\n".join(texts), pytrace=False)


@pytest.fixture(autouse=True)
def _own_plugins() -> Iterator[None]:
    """Forget the plug-ins that a test loads: no later test of this process knows them."""
    before = set(plugin_modules.loaded)
    yield
    for file in set(plugin_modules.loaded) - before:
        del sys.modules[plugin_modules.loaded.pop(file).__name__]


@pytest.fixture(autouse=True)
def _no_capture_goes_on() -> Iterator[None]:
    """Fail a test that leaves a mode of PyTorch's dispatcher: later tests would be captured, too."""
    yield
    torch = sys.modules.get("torch")
    if torch is not None and torch._C._len_torch_dispatch_stack():
        pytest.fail("a mode of PyTorch's dispatcher is left", pytrace=False)


def pytest_runtest_teardown() -> None:
    """Unblock all signals, as an interrupted command blocks them for its process and later programs."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())

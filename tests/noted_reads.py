"""Notes which files of the repository each test file reads, and which commands it starts, for `tests.affected`."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: Paths by test file, in pytest's cache; a run adds to them.
KEY = "buddysim/files_read"
ROOT = Path(__file__).parents[1]
#: Folders of what is made, not written.
MADE = {".git", ".venv", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", "__pycache__", "build", "out"}


class NotedReads:
    """Hooks of pytest and of Python: what is opened, or named in the arguments of a process, belongs to a test file."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.by_test_file: dict[str, set[str]] = defaultdict(set)
        self.test_file = ""
        sys.addaudithook(self.heard)

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.test_file and event == "open":
            self.note(arguments[0])
        elif self.test_file and event == "subprocess.Popen":
            for argument in arguments[1]:
                self.note(argument)

    def note(self, path: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        absolute = Path(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100 (links are not followed)
        if absolute.is_relative_to(ROOT) and absolute != ROOT and not MADE.intersection(absolute.parts):
            self.by_test_file[self.test_file].add(absolute.relative_to(ROOT).as_posix())

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        if isinstance(collector, pytest.Module):
            self.test_file = collector.nodeid
        report = yield
        self.test_file = ""
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test_file = item.nodeid.partition("::")[0]
        self.by_test_file[self.test_file] |= set()
        done = yield
        self.test_file = ""
        return done

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for test_file, paths in getattr(node, "workeroutput", {}).get(KEY, {}).items():
            self.by_test_file[test_file].update(paths)

    def pytest_sessionfinish(self) -> None:
        noted = {test_file: sorted(paths) for test_file, paths in self.by_test_file.items()}
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[KEY] = noted
        elif (cache := getattr(self.config, "cache", None)) is not None:
            earlier: dict[str, list[str]] = cache.get(KEY, {})
            both = earlier.keys() | noted.keys()
            cache.set(KEY, {name: sorted({*earlier.get(name, []), *noted.get(name, [])}) for name in both})

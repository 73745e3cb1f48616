"""Disables one mechanism after the other and reports which tests fail: `make mutants`.

python -m tools.run_mutants                    all mutants without a result for the same sources
python -m tools.run_mutants --only tFAW --only snapshots
python -m tools.run_mutants --only random/
python -m tools.run_mutants --list

A mutant replaces one text in one file. Those of `tools/mutants/*.toml` are written by hand, one per mechanism, but for
`random.toml`, which `tools/random_mutants.py` wrote; those of `generated()` neutralise, one after the other, the
numbers that a machine passes to the replay engine. Each mutant is applied to a copy of the working tree in
`build/mutants/`, in which only changed files are built again. Its tests run until one fails. A mutant that survives its
own tests runs against all tests of its package. A random one that names no tests has those that
`tools/noted_tests.py` notes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from queue import SimpleQueue

from tools.noted_tests import NotedTests, instrumented, run_and_note

ROOT = Path(__file__).resolve().parents[1]
LISTS = ROOT / "tools" / "mutants"
WORK = ROOT / "build" / "mutants"
RESULTS = WORK / "results.json"
COMPILED = {".pyx", ".pxd", ".h"}
MODULES = "buddysim/**/*.so"
PRODUCTS = ("build/**/*", MODULES)
TEST_TIMEOUT_S = 300
BUILD_TIMEOUT_S = 900
TARGET = 0.95
RANDOM_TARGET = 0.9
RANDOM = "random"
#: Seconds of a random mutant's tests, in the run that noted them, after which it counts as survived.
LIMIT_S = 60.0

#: Files with the numbers that a machine passes to the replay engine.
NUMBER_FILES = ("parameters.py", "*/numbers.py", "*/*/numbers.py")
NUMBER = re.compile(r'^ {8}"(?P<name>\w+)": (?P<value>.+),$', re.MULTILINE)
UNITS = {"cycle_ps", "dram_burst_ps", "link_packet_bytes", "link_byte_cost", "refi"}  # units of other numbers


@dataclass(frozen=True)
class Mutant:
    """A change of the sources that switches a mechanism off.

    Attributes
    ----------
    name : of the mutant, unique
    package : the folder of buddysim/ that has the file; `random` for a random mutant
    mechanism : the sentence of the documents that no longer holds
    file, old, new : text that occurs once in the file, and its replacement
    killed_by : tests that should fail, as arguments of pytest; none: not known yet, of a random mutant alone
    survives : why no test can fail; empty for all others
    """

    name: str
    package: str
    mechanism: str
    file: str
    old: str
    new: str
    killed_by: tuple[str, ...] = ()
    survives: str = ""

    def text(self) -> str:
        """Return the changed file."""
        before = (ROOT / self.file).read_text(encoding="utf-8")
        count = before.count(self.old)
        if count != 1:
            raise ValueError(f"mutant {self.name}: its text occurs {count} times in {self.file}: expected once")
        return before.replace(self.old, self.new)

    def _nearest_tests(self) -> str:
        """Return the file's own tests, or those of the nearest folder."""
        path = Path("tests", *Path(self.file).parts[1:])
        own = (path.with_name(f"test_{path.name}"), *path.parents)
        return next(one.as_posix() for one in own if (ROOT / one).exists())

    def tests(self, noted: NotedTests) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield its own tests, then all of its package or of their files, each with the outcome if one fails."""
        if not self.killed_by:
            yield "killed", noted.of(self.name, LIMIT_S)
            yield "killed", noted.files_of(self.name, LIMIT_S)
            if "" in noted.by_mutant.get(self.name, ()):
                yield "killed", (self._nearest_tests(),)
        else:
            yield "killed", self.killed_by
            yield "killed elsewhere", (f"tests/{self.file.split('/')[1]}",)


@dataclass
class MutantResult:
    """The outcome of a mutant: ``killed``, ``killed elsewhere``, ``survived``, or ``does not build``."""

    mutant: str
    outcome: str
    by: str = ""
    seconds: float = 0.0


@dataclass
class Tree:
    """A copy of the working tree in which mutants are built and tested, one at a time.

    Attributes
    ----------
    path : of the copy
    is_built : whether a mutant of a compiled file is among them; else the working tree's products are copied
    """

    path: Path
    is_built: bool
    clean: Path = field(init=False)

    def __post_init__(self) -> None:
        self.clean = self.path.with_name(self.path.name + "-clean")
        self.synchronise(ROOT, self.path, tracked_files())
        if self.is_built:
            self.build()
            self._copy_build(self.path, self.clean)
        else:
            self._copy_build(ROOT, self.path, [MODULES])

    def synchronise(self, source: Path, target: Path, files: Iterable[str]) -> None:
        """Update files; an unchanged file keeps its modification time, so that it is not built again."""
        names = set(files)
        for name in names:
            copy = target / name
            if not copy.exists() or copy.read_bytes() != (source / name).read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, copy)
        for copy in (path for path in target.rglob("*") if path.is_file()):
            name = copy.relative_to(target).as_posix()
            if name not in names and copy.suffix != ".so" and not name.startswith(("build/", ".hypothesis/")):
                copy.unlink()

    def build(self) -> subprocess.CompletedProcess[str]:
        """Build the extensions whose sources changed, without optimisation: tests are shorter than builds."""
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        environment = {**os.environ, "CC": str(self.compiler())}
        return subprocess.run(
            command, cwd=self.path, env=environment, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S
        )

    def compiler(self) -> Path:
        """Return a compiler that never optimises, whatever its other flags are."""
        script = self.path.with_name("cc-O0")
        if not script.exists():
            script.write_text('#!/bin/sh\nexec cc "$@" -O0\n', encoding="utf-8")
            script.chmod(0o755)
        return script

    def restore(self, mutant: Mutant) -> None:
        """Restore the clean tree without building."""
        name = mutant.file
        shutil.copyfile(ROOT / name, self.path / name)
        if Path(name).suffix in COMPILED:
            self._copy_build(self.clean, self.path)
            now = time.time() - 3600  # older than every product of the file
            os.utime(self.path / name, (now, now))

    def _copy_build(self, source: Path, target: Path, patterns: Sequence[str] = PRODUCTS) -> None:
        for path in (path for pattern in patterns for path in source.glob(pattern)):
            copy = target / path.relative_to(source)
            if path.is_file() and not (copy.exists() and copy.stat().st_mtime_ns == path.stat().st_mtime_ns):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)

    def note(self, mutants: Sequence[Mutant], tests: Sequence[str], workers: int) -> NotedTests:
        """Return which tests random mutants can fail, from one run with all of them watched."""
        by_file: dict[str, list[Mutant]] = {}
        for mutant in mutants:
            by_file.setdefault(mutant.file, []).append(mutant)
        try:
            for file, own in by_file.items():
                text = instrumented((ROOT / file).read_text(encoding="utf-8"), own)
                (self.path / file).write_text(text, encoding="utf-8")
            return run_and_note(self.path, tests, workers)
        finally:
            for file in by_file:
                shutil.copyfile(ROOT / file, self.path / file)

    def run(self, mutant: Mutant, noted: NotedTests) -> MutantResult:
        """Apply a mutant, build, test, and restore."""
        began = time.monotonic()
        try:
            (self.path / mutant.file).write_text(mutant.text(), encoding="utf-8")
            if Path(mutant.file).suffix in COMPILED:
                built = self.build()
                if built.returncode:
                    return MutantResult(mutant.name, "does not build", built.stderr.strip()[-300:])
            result = self._test(mutant, noted)
        finally:
            self.restore(mutant)
        result.seconds = round(time.monotonic() - began, 1)
        return result

    def _test(self, mutant: Mutant, noted: NotedTests) -> MutantResult:
        for outcome, tests in mutant.tests(noted):
            failed = self.first_failure(tests, noted.failing) if tests else ""
            if failed:
                return MutantResult(mutant.name, outcome, failed)
        return MutantResult(mutant.name, "survived")

    def first_failure(self, tests: Sequence[str], left_out: Sequence[str]) -> str:
        """Return the first test that fails, or another problem; empty if all pass."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", *tests]
        command += [f"--deselect={test}" for test in left_out]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.path),
            "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            done = subprocess.run(
                command, cwd=self.path, env=environment, capture_output=True, text=True, timeout=TEST_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        if done.returncode == 0:
            return ""
        if done.returncode in (4, 5):
            raise ValueError(f"{' '.join(tests)}: expected tests that pytest can collect")
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return failed.group(1) if failed else f"pytest ended with {done.returncode}"


def tracked_files() -> list[str]:
    """Return the files of the working tree that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


def listed() -> Iterator[Mutant]:
    """Yield the mutants of `tools/mutants/*.toml`."""
    for path in sorted(LISTS.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            tests = entry.pop("killed_by", ())
            package = RANDOM if path.stem == RANDOM else entry["file"].split("/")[1]
            yield Mutant(package=package, killed_by=(tests,) if isinstance(tests, str) else tuple(tests), **entry)


def generated() -> Iterator[Mutant]:
    """Yield a mutant for each time, cost and limit of the engine: no latency, lowest cost, no limit."""
    replay = ROOT / "buddysim" / "replay"
    for path in sorted(path for pattern in NUMBER_FILES for path in replay.glob(pattern)):
        yield from _numbers_of(path)


def _numbers_of(path: Path) -> Iterator[Mutant]:
    for match in NUMBER.finditer(path.read_text(encoding="utf-8")):
        name = match["name"]
        is_time = name.endswith(("_ps", "_cost", "_header_bytes")) or ".ps(" in match["value"]
        if name not in UNITS and (is_time or name.endswith("mshrs")):
            neutral = "4096" if name.endswith("mshrs") else "1" if name.endswith("cost") else "0"
            yield Mutant(
                name=f"number-{name}",
                package="replay",
                mechanism=f"`{name}` of the machine has an effect",
                file=path.relative_to(ROOT).as_posix(),
                old=match[0],
                new=f'        "{name}": {neutral},',
                killed_by=("tests/replay/mechanisms", "tests/replay/test_microbenchmarks.py"),
            )


def every_mutant() -> list[Mutant]:
    """Return all mutants, in the order of their files."""
    mutants = [*listed(), *generated()]
    names = [mutant.name for mutant in mutants]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"two mutants are named {', '.join(doubled)}")
    return mutants


@cache
def state_of_sources() -> bytes:
    """Return a hash of everything that the result of any mutant depends on: sources and tests."""
    digest = hashlib.sha256()
    for name in sorted(tracked_files()):
        if name.startswith(("buddysim/", "tests/", "traces/", "setup.py")):
            digest.update(name.encode() + (ROOT / name).read_bytes())
    return digest.digest()


def state_of(mutant: Mutant) -> str:
    """Return a hash of everything that the result of a mutant depends on."""
    return hashlib.sha256(state_of_sources() + json.dumps(asdict(mutant), sort_keys=True).encode()).hexdigest()


def stored_results(mutants: Sequence[Mutant]) -> dict[str, MutantResult]:
    """Return the results of an earlier, interrupted run on the same sources."""
    content = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    states = {mutant.name: state_of(mutant) for mutant in mutants}
    return {
        name: MutantResult(**entry["result"]) for name, entry in content.items() if states.get(name) == entry["state"]
    }


def noted_tests(tree: Tree, mutants: Sequence[Mutant], tests: Sequence[str], workers: int) -> NotedTests:
    """Return which tests mutants can fail that name none, stored for the same sources and mutants."""
    unknown = [mutant for mutant in mutants if not mutant.killed_by]
    if not unknown:
        return NotedTests({}, (), {})
    states = json.dumps([*map(state_of, unknown), *tests])
    path = WORK / f"noted-{hashlib.sha256(states.encode()).hexdigest()[:16]}.json"
    if not path.exists():
        print(f"noting which tests {len(unknown)} random mutants can fail", flush=True)
        noted = tree.note(unknown, tests, workers)
        path.write_text(json.dumps(asdict(noted), indent=1), encoding="utf-8")
    return NotedTests(**json.loads(path.read_text(encoding="utf-8")))


def run_all(mutants: Sequence[Mutant], workers: int, tests: Sequence[str] = ("tests",)) -> list[MutantResult]:
    """Run mutants in parallel, each worker in its own tree; store every result at once."""
    results = stored_results(mutants)
    remaining = [mutant for mutant in mutants if mutant.name not in results]
    if results:
        print(f"{len(results)} of {len(mutants)} mutants have a stored result", flush=True)
    states = {mutant.name: state_of(mutant) for mutant in mutants}
    is_built = any(Path(mutant.file).suffix in COMPILED for mutant in remaining)
    made = [Tree(WORK / f"tree-{worker}", is_built) for worker in range(min(workers, len(remaining)))]
    noted = noted_tests(made[0], mutants, tests, workers) if made else NotedTests({}, (), {})
    trees: SimpleQueue[Tree] = SimpleQueue()
    for tree in made:
        trees.put(tree)

    def run(mutant: Mutant) -> MutantResult:
        tree = trees.get()
        try:
            return tree.run(mutant, noted)
        finally:
            trees.put(tree)

    content = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for mutant, result in zip(remaining, pool.map(run, remaining), strict=True):
            results[mutant.name] = result
            print(line(len(results), len(mutants), mutant, result), flush=True)
            content[mutant.name] = {"state": states[mutant.name], "result": asdict(result)}
            RESULTS.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return [results[mutant.name] for mutant in mutants]


def line(done: int, total: int, mutant: Mutant, result: MutantResult) -> str:
    """Return a line of progress."""
    by = f" by {result.by}" if result.by else ""
    return f"{done:3d}/{total} {result.seconds:6.1f} s  {mutant.package}/{mutant.name}: {result.outcome}{by}"


def summary(
    mutants: Sequence[Mutant], results: Sequence[MutantResult], target: float = TARGET
) -> tuple[list[str], bool]:
    """Return the kill rate and every survivor with its explanation, and whether the target is reached."""
    killed = sum(result.outcome.startswith("killed") for result in results)
    lines = [f"{killed} of {len(mutants)} mutants killed ({killed / len(mutants):.1%}; target: {target:.0%})"]
    unexplained = False
    for mutant, result in zip(mutants, results, strict=True):
        if not result.outcome.startswith("killed"):
            why = mutant.survives if result.outcome == "survived" else result.by
            unexplained |= not mutant.survives
            lines.append(f"  {result.outcome}: {mutant.name} ({mutant.mechanism}): {why or 'no explanation'}")
    return lines, killed >= target * len(mutants) and not unexplained


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants and print the kill rate; 1 if it is below the target or a survivor has no explanation."""
    parser = argparse.ArgumentParser(description="disables one mechanism after the other and reports which tests fail")
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="run only mutants with this in their package or name"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants that run in parallel")
    parser.add_argument(
        "--tests", nargs="+", default=["tests"], metavar="PATH", help="quick tests that may kill a random mutant"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and exit")
    options = parser.parse_args(arguments)
    mutants = every_mutant()
    if options.only:
        mutants = [m for m in mutants if any(text in f"{m.package}/{m.name}" for text in options.only)]
    if not mutants:
        parser.error(f"--only {' '.join(options.only)}: no mutant has this text")
    if options.list:
        for mutant in mutants:
            print(f"{mutant.package}/{mutant.name}: {mutant.mechanism}")
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    results = dict(zip(mutants, run_all(mutants, options.workers, options.tests), strict=True))
    is_reached = True
    for title, target, own in (
        ("by hand", TARGET, [mutant for mutant in mutants if mutant.package != RANDOM]),
        ("at random", RANDOM_TARGET, [mutant for mutant in mutants if mutant.package == RANDOM]),
    ):
        if own:
            lines, is_own_reached = summary(own, [results[mutant] for mutant in own], target)
            print("\n".join([f"{title}: {lines[0]}", *lines[1:]]))
            is_reached &= is_own_reached
    return 0 if is_reached else 1


if __name__ == "__main__":
    sys.exit(main())

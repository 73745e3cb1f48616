"""Disables one mechanism after the other and says which tests notice: `make mutants`.

python tools/run_mutants.py                    all mutants; those already judged on the same sources are skipped
python tools/run_mutants.py --only tFAW --only snapshots
python tools/run_mutants.py --list

A mutant replaces one piece of text in one file. Those of `tools/mutants/*.toml` are written by hand, one per mechanism;
those of `generated()` neutralise, one after the other, the numbers that a machine hands to the replay engine. Each is
applied to a copy of the working tree in `build/mutants/`, in which only what changed is built again, and its tests run
until one fails. A mutant that its own tests don't notice runs against all tests of its room.
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

ROOT = Path(__file__).resolve().parents[1]
LISTS = ROOT / "tools" / "mutants"
WORK = ROOT / "build" / "mutants"
COMPILED = {".pyx", ".pxd", ".h"}
TEST_TIMEOUT_S = 300
BUILD_TIMEOUT_S = 900
TARGET = 0.95

PARAMETERS = "buddysim/replay/parameters.py"
NUMBER = re.compile(r'^ {8}"(?P<name>\w+)": (?P<value>.+),$', re.MULTILINE)
UNITS = {"cycle_ps", "dram_burst_ps", "link_packet_bytes", "link_byte_cost", "refi"}  # what others are counted in


@dataclass(frozen=True)
class Mutant:
    """A mechanism switched off.

    Attributes
    ----------
    name : of the mutant, unique
    room : the folder of the package that it is in
    mechanism : the sentence of the documents that no longer holds
    file, old, new : text that occurs once in the file, and what takes its place
    killed_by : tests that should notice, as arguments of pytest
    survives : why no test can notice; empty for all others
    """

    name: str
    room: str
    mechanism: str
    file: str
    old: str
    new: str
    killed_by: tuple[str, ...]
    survives: str = ""

    def text(self) -> str:
        """The file as the mutant has it."""
        before = (ROOT / self.file).read_text(encoding="utf-8")
        count = before.count(self.old)
        if count != 1:
            raise ValueError(f"mutant {self.name}: its text occurs {count} times in {self.file}: expected once")
        return before.replace(self.old, self.new)

    def tests(self) -> Iterator[tuple[str, ...]]:
        """Its own tests, then all of its room."""
        yield self.killed_by
        yield (f"tests/{self.room}",)


@dataclass
class Verdict:
    """What became of a mutant: ``killed``, ``killed elsewhere``, ``survived``, or ``does not build``."""

    mutant: str
    verdict: str
    by: str = ""
    seconds: float = 0.0


@dataclass
class Tree:
    """A copy of the working tree in which mutants are built and tested, one at a time."""

    path: Path
    clean: Path = field(init=False)

    def __post_init__(self) -> None:
        self.clean = self.path.with_name(self.path.name + "-clean")
        self.synchronise(ROOT, self.path, tracked_files())
        self.build()
        self.keep()

    def synchronise(self, source: Path, target: Path, files: Iterable[str]) -> None:
        """Brings files up to date; one that has not changed keeps its time, so that nothing is built for it."""
        wanted = set(files)
        for name in wanted:
            there = target / name
            if not there.exists() or there.read_bytes() != (source / name).read_bytes():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, there)
        for there in (path for path in target.rglob("*") if path.is_file()):
            name = there.relative_to(target).as_posix()
            if name not in wanted and there.suffix != ".so" and not name.startswith(("build/", ".hypothesis/")):
                there.unlink()

    def build(self) -> subprocess.CompletedProcess[str]:
        """Builds the extensions whose sources changed, without optimisation: tests are short, builds are not."""
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        environment = {**os.environ, "CC": str(self.compiler())}
        return subprocess.run(
            command, cwd=self.path, env=environment, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S
        )

    def compiler(self) -> Path:
        """A compiler that leaves optimisation out, whatever the flags before say."""
        script = self.path.with_name("cc-O0")
        if not script.exists():
            script.write_text('#!/bin/sh\nexec cc "$@" -O0\n', encoding="utf-8")
            script.chmod(0o755)
        return script

    def keep(self) -> None:
        """Puts what was built aside, times and all."""
        self._built(self.path, self.clean)

    def restore(self, mutant: Mutant) -> None:
        """The clean tree again, without building."""
        name = mutant.file
        shutil.copyfile(ROOT / name, self.path / name)
        if Path(name).suffix in COMPILED:
            self._built(self.clean, self.path)
            now = time.time() - 3600  # before anything that was built from it
            os.utime(self.path / name, (now, now))

    def _built(self, source: Path, target: Path) -> None:
        for path in [*source.glob("build/**/*"), *source.glob("buddysim/**/*.so")]:
            there = target / path.relative_to(source)
            if path.is_file() and not (there.exists() and there.stat().st_mtime_ns == path.stat().st_mtime_ns):
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, there)

    def judge(self, mutant: Mutant) -> Verdict:
        """Applies a mutant, builds, tests, and restores."""
        began = time.monotonic()
        try:
            (self.path / mutant.file).write_text(mutant.text(), encoding="utf-8")
            if Path(mutant.file).suffix in COMPILED:
                built = self.build()
                if built.returncode:
                    return Verdict(mutant.name, "does not build", built.stderr.strip()[-300:])
            found = self._test(mutant)
        finally:
            self.restore(mutant)
        found.seconds = round(time.monotonic() - began, 1)
        return found

    def _test(self, mutant: Mutant) -> Verdict:
        for verdict, tests in zip(("killed", "killed elsewhere"), mutant.tests(), strict=True):
            failed = self.first_failure(tests)
            if failed:
                return Verdict(mutant.name, verdict, failed)
        return Verdict(mutant.name, "survived")

    def first_failure(self, tests: Sequence[str]) -> str:
        """The first of the tests that fails, or what else went wrong; empty where all pass."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", *tests]
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
            return "no end"
        if done.returncode == 0:
            return ""
        if done.returncode in (4, 5):
            raise ValueError(f"{' '.join(tests)}: expected tests that pytest finds")
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return failed.group(1) if failed else f"pytest ended with {done.returncode}"


def tracked_files() -> list[str]:
    """The files of the working tree, those that git ignores left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


def written() -> Iterator[Mutant]:
    """The mutants of `tools/mutants/*.toml`."""
    for path in sorted(LISTS.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            tests = entry.pop("killed_by")
            room = entry["file"].split("/")[1]
            yield Mutant(room=room, killed_by=(tests,) if isinstance(tests, str) else tuple(tests), **entry)


def generated() -> Iterator[Mutant]:
    """One mutant for each time, cost and limit that the engine is given: no latency, least cost, no limit."""
    text = (ROOT / PARAMETERS).read_text(encoding="utf-8")
    for found in NUMBER.finditer(text):
        name = found["name"]
        is_time = name.endswith(("_ps", "_cost", "_header_bytes")) or "m.ps(" in found["value"]
        if name not in UNITS and (is_time or name.endswith("mshrs")):
            neutral = "4096" if name.endswith("mshrs") else "1" if name.endswith("cost") else "0"
            yield Mutant(
                name=f"number-{name}",
                room="replay",
                mechanism=f"`{name}` of the machine counts",
                file=PARAMETERS,
                old=found[0],
                new=f'        "{name}": {neutral},',
                killed_by=("tests/replay/mechanisms", "tests/replay/test_microbenchmarks.py"),
            )


def every_mutant() -> list[Mutant]:
    """All mutants, by room and order of writing."""
    found = [*written(), *generated()]
    names = [mutant.name for mutant in found]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"two mutants are named {', '.join(doubled)}")
    return found


@cache
def state_of_sources() -> bytes:
    """A hash of everything that the verdict on any mutant depends on: sources and tests."""
    digest = hashlib.sha256()
    for name in sorted(tracked_files()):
        if name.startswith(("buddysim/", "tests/", "traces/", "setup.py")):
            digest.update(name.encode() + (ROOT / name).read_bytes())
    return digest.digest()


def state_of(mutant: Mutant) -> str:
    """A hash of everything that the verdict on a mutant depends on."""
    return hashlib.sha256(state_of_sources() + json.dumps(asdict(mutant), sort_keys=True).encode()).hexdigest()


def judged_before(mutants: Sequence[Mutant]) -> dict[str, Verdict]:
    """Verdicts of an earlier, interrupted run on the same sources."""
    path = WORK / "verdicts.json"
    if not path.exists() or not mutants:
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    states = {mutant.name: state_of(mutant) for mutant in mutants}
    return {name: Verdict(**one["verdict"]) for name, one in content.items() if states.get(name) == one["state"]}


def judge_all(mutants: Sequence[Mutant], workers: int) -> list[Verdict]:
    """Judges mutants side by side, each worker in a tree of its own; keeps every verdict as soon as it is there."""
    verdicts = judged_before(mutants)
    left = [mutant for mutant in mutants if mutant.name not in verdicts]
    if verdicts:
        print(f"{len(verdicts)} of {len(mutants)} mutants are judged already", flush=True)
    states = {mutant.name: state_of(mutant) for mutant in left}
    kept = {mutant.name: state_of(mutant) for mutant in mutants if mutant.name in verdicts} | states
    trees: SimpleQueue[Tree] = SimpleQueue()
    for worker in range(min(workers, len(left))):
        trees.put(Tree(WORK / f"tree-{worker}"))

    def judge(mutant: Mutant) -> Verdict:
        tree = trees.get()
        try:
            return tree.judge(mutant)
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(max(1, workers)) as pool:
        for mutant, verdict in zip(left, pool.map(judge, left), strict=True):
            verdicts[mutant.name] = verdict
            print(line(len(verdicts), len(mutants), mutant, verdict), flush=True)
            content = {name: {"state": kept[name], "verdict": asdict(one)} for name, one in verdicts.items()}
            (WORK / "verdicts.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    return [verdicts[mutant.name] for mutant in mutants]


def line(done: int, total: int, mutant: Mutant, verdict: Verdict) -> str:
    """One line of progress."""
    by = f" by {verdict.by}" if verdict.by else ""
    return f"{done:3d}/{total} {verdict.seconds:6.1f} s  {mutant.room}/{mutant.name}: {verdict.verdict}{by}"


def summary(mutants: Sequence[Mutant], verdicts: Sequence[Verdict]) -> tuple[list[str], bool]:
    """The kill rate and every survivor with its explanation; whether the target is met."""
    killed = sum(verdict.verdict.startswith("killed") for verdict in verdicts)
    lines = [f"{killed} of {len(mutants)} mutants killed ({killed / len(mutants):.1%}; asked: {TARGET:.0%})"]
    unexplained = False
    for mutant, verdict in zip(mutants, verdicts, strict=True):
        if not verdict.verdict.startswith("killed"):
            why = mutant.survives if verdict.verdict == "survived" else verdict.by
            unexplained |= not mutant.survives
            lines.append(f"  {verdict.verdict}: {mutant.name} ({mutant.mechanism}): {why or 'no explanation'}")
    return lines, killed >= TARGET * len(mutants) and not unexplained


def main(arguments: Sequence[str] | None = None) -> int:
    """Judges the mutants and prints the kill rate; 1 where it is below the target or a survivor has no explanation."""
    parser = argparse.ArgumentParser(description="disables one mechanism after the other and says which tests notice")
    parser.add_argument("--only", action="append", metavar="TEXT", help="mutants whose room or name has this text")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--list", action="store_true", help="print the mutants and leave")
    options = parser.parse_args(arguments)
    chosen = every_mutant()
    if options.only:
        chosen = [m for m in chosen if any(text in f"{m.room}/{m.name}" for text in options.only)]
    if not chosen:
        parser.error(f"--only {' '.join(options.only)}: no mutant has this text")
    if options.list:
        for mutant in chosen:
            print(f"{mutant.room}/{mutant.name}: {mutant.mechanism}")
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    lines, met = summary(chosen, judge_all(chosen, options.workers))
    print("\n".join(lines))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

"""Which tests a change can affect: `make check` runs those.

A test file is affected by the modules that it imports, directly or through others, by the data in their folders, and by
what it was seen to read in earlier runs (`tests.noted_reads`). A test that calls or starts the command line is affected
by the commands that it names. What nothing is known about affects every test.

`python -m tests.affected` prints the test files that the change since `main`, or of the working tree, can affect;
`--commits N` prints the median processor time of the tests of the last N commits.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests import noted_reads, processor_time
from tests.syntax_trees import nodes_of
from tests.test_circles import cython_names, module_named, modules, python_names

ROOT = Path(__file__).parents[1]
FOLDERS = ("buddysim", "tests", "tools", "benchmarks", "plots")
COMMAND_LINE = "buddysim.cli"
CACHE = ROOT / ".pytest_cache" / "v"
MODULES = (".py", ".pyx", ".pxd")
#: They decide how all tests are built and run.
OF_EVERY_TEST = {"pyproject.toml", "setup.py", "tests/conftest.py"}


@cache
def graph(root: Path) -> tuple[dict[str, Path], dict[str, set[str]]]:
    """Return each module's file, and the modules that it imports; a registry imports all modules of its folder."""
    files = {name: path for folder in FOLDERS for name, path in modules(root / folder).items()}
    imports = {}
    for name, path in files.items():
        within = ".".join(path.relative_to(root).parent.parts)
        names = python_names(path) if path.suffix == ".py" else cython_names(path, within)
        imports[name] = {module for text in names if (module := module_named(text, files))}
        imports[name] |= {parent for parent in parents(name) if parent in files}
        if path.name == "__init__.py" and name != COMMAND_LINE and "Registry(" in path.read_text(encoding="utf-8"):
            imports[name] |= {module for module in files if module.rpartition(".")[0] == name}
    return files, imports


def parents(name: str) -> list[str]:
    parts = name.removesuffix(".pxd").split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def reached(start: Collection[str], imports: Mapping[str, set[str]]) -> set[str]:
    """Return modules with those that they import, through whatever others."""
    within: set[str] = set()
    left = list(start)
    while left:
        name = left.pop()
        if name not in within:
            within.add(name)
            left += imports[name]
    return within


@cache
def words_of(path: Path) -> set[str]:
    """Return the words of a file's texts that may name a command: the first ones, and those behind the program."""
    texts = (node.value for node in nodes_of(path) if isinstance(node, ast.Constant))
    lists = [text.split() for text in texts if isinstance(text, str)]
    first = {words[0] for words in lists if words}
    return first | {word for words in lists for program, word in pairwise(words) if program == "buddysim"}


def files_of_tests(noted: Mapping[str, Collection[str]], root: Path) -> dict[str, set[str]]:
    """Return for each test file the files that can affect it, as paths from the root."""
    files, imports = graph(root)
    relative = {name: path.relative_to(root).as_posix() for name, path in files.items()}
    commands = {name.rpartition(".")[2]: name for name in files if name.rpartition(".")[0] == COMMAND_LINE}
    affecting = {}
    for name, path in files.items():
        test_file = relative[name]
        if not (test_file.startswith("tests/") and path.name.startswith("test_")) or test_file not in noted:
            continue
        within = reached([name], imports)
        own = [files[module] for module in within if module.startswith("tests.")]
        words = {word.replace("-", "_") for one in own for word in words_of(one)}
        if any(file.endswith(".md") for file in noted[test_file]):  # whose commands it may run
            words |= commands.keys()
        if COMMAND_LINE in within or "buddysim" in words:
            called = [commands[word] for word in words & commands.keys()]
            within |= reached([*called, COMMAND_LINE, "buddysim.__main__"], imports)
        affecting[test_file] = {relative[module] for module in within} | {*noted[test_file]}
    return affecting


def affected(changed: Collection[str], affecting: Mapping[str, set[str]], root: Path = ROOT) -> list[str]:
    """Return the test files that a change of files can affect: in doubt all.

    Parameters
    ----------
    changed : paths from the root
    affecting : of `files_of_tests`; a test file that is not in it is new
    """
    every = {path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")}
    tests_by_file, tests_by_folder = defaultdict(set), defaultdict(set)
    for test_file, paths in affecting.items():
        for path in paths:
            tests_by_file[path].add(test_file)
            tests_by_folder[path.rpartition("/")[0]].add(test_file)
    selected = (every - affecting.keys()) | (every & {*changed})
    for path in changed:
        folder = path.rpartition("/")[0]
        while folder not in tests_by_folder and folder:
            folder = folder.rpartition("/")[0]
        if path in OF_EVERY_TEST:
            return sorted(every)
        if path.endswith("/conftest.py"):
            selected |= {test_file for test_file in every if test_file.startswith(path.removesuffix("conftest.py"))}
        elif path in tests_by_file and not (path.startswith("buddysim/") and Path(path).suffix not in MODULES):
            selected |= tests_by_file[path]
        elif path not in every:
            selected |= tests_by_file[path] | tests_by_folder.get(folder, every)
    return sorted(selected & every)


def changed_files(base: str) -> set[str]:
    """Return what differs from the commit at which this branch left another one, with new files."""
    fork = git("merge-base", "HEAD", base)[0]
    return {*git("diff", "--name-only", fork), *git("ls-files", "--others", "--exclude-standard")}


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def stored(key: str) -> dict[str, list[str]]:
    file = CACHE / key
    content: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return content


def print_history(count: int) -> None:
    """Print the processor time of the quick tests that each of the last commits affects, and the median."""
    affecting, seconds = files_of_tests(stored(noted_reads.KEY), ROOT), defaultdict(float)
    for name, taken in stored(processor_time.KEY).items():
        if not name.endswith(" (slow)"):
            seconds[name.partition("::")[0]] += float(taken)  # type: ignore[arg-type]
    times = []
    for line in git("log", f"-{count}", "--format=%h %s"):
        commit = line.partition(" ")[0]
        selected = affected(git("show", "--name-only", "--format=", commit), affecting)
        times.append(sum(seconds[test_file] for test_file in selected))
        print(f"{times[-1]:8.1f} s {len(selected):4} files  {line[:80]}")
    print(f"median {statistics.median(times):.1f} s of {sum(seconds.values()):.0f} s")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base", default="main", help="the branch that this one left")
    parser.add_argument("--commits", type=int, metavar="N", help="print the median of the last N commits")
    options = parser.parse_args(arguments)
    if options.commits:
        print_history(options.commits)
    else:
        affecting = files_of_tests(stored(noted_reads.KEY), ROOT)
        print("\n".join(affected(changed_files(options.base), affecting)))


if __name__ == "__main__":
    main()

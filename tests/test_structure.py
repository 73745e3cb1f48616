"""The package has the structure of docs/developers/architecture.md: imports between folders, length of functions."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from buddysim.base.kinds import HOMES
from tests.syntax_trees import called_name, nodes_of
from tests.test_circles import circles, imports

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "buddysim"
ARCHITECTURE = ROOT / "docs" / "developers" / "architecture.md"
MAX_LINES = 80
CYTHON_IMPORT = re.compile(r"^\s*from\s+(buddysim[\w.]*)\s+c?import\s+\(?(\w*)|^\s*c?import\s+(buddysim[\w.]*)", re.M)
CYTHON_FUNCTION = re.compile(r"^(?P<indent>\s*)(?:def|cdef|cpdef)\s(?!class\s)[^=\n]*\w\(")


def allowed() -> dict[str, set[str]]:
    """Return for each folder what it may import, from the document's table; ``everything`` stands for all folders."""
    table = ARCHITECTURE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \| .* \| ([^|]*) \|$", table, flags=re.M)
    imports_of = {folder: set(re.findall(r"\w+", imports)) for folder, imports in rows}
    return {folder: set(imports_of) if "everything" in imports else imports for folder, imports in imports_of.items()}


def sources(*suffixes: str) -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in suffixes and "__pycache__" not in path.parts)


def python_imports(path: Path) -> Iterator[str]:
    """Return the dotted names that a file imports, including arguments of `import_module`."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called_name(node) == "import_module" and node.args:
            name = node.args[0]
            if isinstance(name, ast.JoinedStr):
                name = name.values[0]
            if isinstance(name, ast.Constant):
                yield str(name.value)


def cython_imports(path: Path) -> Iterator[str]:
    for module, first_name, plain in CYTHON_IMPORT.findall(path.read_text(encoding="utf-8")):
        yield f"{module}.{first_name}" if module else plain


def folders_imported(path: Path) -> set[str]:
    imports = python_imports(path) if path.suffix in (".py", ".pyi") else cython_imports(path)
    parts = [name.split(".") for name in imports]
    return {name[1] for name in parts if name[0] == "buddysim" and len(name) > 1 and (PACKAGE / name[1]).is_dir()}


def test_the_table_has_every_folder() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(allowed()) == folders


def test_no_folder_imports_what_the_table_does_not_allow() -> None:
    table = allowed()
    wrong = []
    for path in sources(".py", ".pyi", ".pyx", ".pxd"):
        folder = path.relative_to(PACKAGE).parts[0]
        if (PACKAGE / folder).is_dir():
            wrong += [
                f"{path.relative_to(ROOT)} imports {imported}"
                for imported in folders_imported(path) - table[folder] - {folder}
            ]
    assert not wrong


def test_the_table_has_no_cycle() -> None:
    left = allowed()
    while left:
        bottom = {folder for folder, imports in left.items() if not imports & (left.keys() - {folder})}
        assert bottom, f"these import each other: {sorted(left)}"
        left = {folder: imports for folder, imports in left.items() if folder not in bottom}


def test_the_table_allows_nothing_that_is_not_used() -> None:
    used: dict[str, set[str]] = {folder: set() for folder in allowed()}
    for path in sources(".py", ".pyi", ".pyx", ".pxd"):
        folder = path.relative_to(PACKAGE).parts[0]
        if folder in used:
            used[folder] |= folders_imported(path)
    unused = {folder: imports - used[folder] for folder, imports in allowed().items() if folder != "cli"}
    assert not {folder: imports for folder, imports in unused.items() if imports}


@cache
def module_graph(types: bool) -> dict[str, set[str]]:
    return imports(PACKAGE, types)


def members(folder: Path, types: bool = False) -> dict[str, set[str]]:
    """Return for each member of a folder those of it that it imports at run time; those for types too if `types`.

    A member is a file, a folder, or the declarations of a Cython file.
    """
    within = ".".join(folder.relative_to(PACKAGE.parent).parts) + "."

    def member(module: str) -> str | None:
        name, _, rest = module.removeprefix(within).partition(".")
        if not module.startswith(within) or name == "pxd":
            return None
        return f"{name}.pxd" if rest == "pxd" and not (folder / name).is_dir() else name

    graph: dict[str, set[str]] = {}
    for module, imported in module_graph(types).items():
        if (name := member(module)) is not None:
            graph.setdefault(name, set()).update(filter(None, map(member, imported)))
    return {name: imported - {name} for name, imported in graph.items()}


def folders() -> Iterator[Path]:
    """Return every folder of code within the package."""
    return (path.parent for path in sources(".py") if path.name == "__init__.py" and path.parent != PACKAGE)


def named_circles() -> dict[str, list[list[str]]]:
    """Return the circles that stay, by folder."""
    table = ARCHITECTURE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+)` \| ((?:`[\w.]+` )+)\| .+ \|$", table, flags=re.M)
    named: dict[str, list[list[str]]] = {}
    for folder, circle in rows:
        named.setdefault(folder, []).append(re.findall(r"[\w.]+", circle))
    return named


def floors() -> dict[str, list[list[str]]]:
    """Return the members on each floor, the ground first, by folder."""
    tables = re.findall(r"^### In `([\w/]+)/`\n\n((?:\|.*\n)+)", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.M)
    return {
        folder: [re.findall(r"`([\w.]+)`", row.split("|")[1]) for row in rows.splitlines()[2:]]
        for folder, rows in tables
    }


def test_no_folder_reaches_itself_through_others() -> None:
    in_folder = {str(folder.relative_to(PACKAGE)): sorted(circles(members(folder))) for folder in folders()}
    assert {folder: here for folder, here in in_folder.items() if here} == named_circles()


def test_types_close_no_circle_of_folders() -> None:
    """Files may name each other's types."""
    wrong = [
        f"{folder.relative_to(PACKAGE)}: {' <-> '.join(circle)}"
        for folder in folders()
        for circle in circles(members(folder, types=True))
        if sum((folder / name).is_dir() for name in circle) > 1
        and circle not in named_circles().get(str(folder.relative_to(PACKAGE)), [])
    ]
    assert not wrong


def test_a_large_folder_has_a_table_of_floors() -> None:
    homes = [PACKAGE.parent.joinpath(*home.split(".")) for home in HOMES.values()]
    registries = {home if home.is_dir() else home.parent for home in homes}
    large = {
        str(folder.relative_to(PACKAGE))
        for folder in folders()
        if folder not in registries
        and len(names := members(folder)) > 10
        and sum((folder / name).is_dir() for name in names) > 2
    }
    assert large == set(floors())


def test_a_member_imports_from_lower_floors() -> None:
    wrong = []
    for folder, rows in floors().items():
        graph = members(PACKAGE / folder)
        floor_of = {name: number for number, names in enumerate(rows) for name in names}
        assert sorted(name for names in rows for name in names) == sorted(graph), folder
        for name, imported in graph.items():
            allowed_here = {*itertools.chain(*(circle for circle in named_circles().get(folder, []) if name in circle))}
            wrong += [
                f"{folder}/{name} imports {other}"
                for other in imported - allowed_here
                if floor_of[other] >= floor_of[name]
            ]
    assert not wrong


def test_an_extension_that_python_imports_has_its_stub() -> None:
    """Others are reached through a registry, or from Cython alone."""
    imported = {name for path in sources(".py", ".pyi") for name in python_imports(path)}
    imported |= {name.rpartition(".")[0] for name in imported}
    without = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources(".pyx")}
    without -= {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources(".pyi")}
    assert without
    assert not without & imported


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def cython_functions(path: Path) -> Iterator[tuple[str, int]]:
    """A function ends before the next line that is indented no deeper, once its head has ended."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for first, line in enumerate(lines):
        head = CYTHON_FUNCTION.match(line)
        if head is None:
            continue
        last = first
        while last < len(lines) and not lines[last].partition("#")[0].rstrip().endswith(":"):
            last += 1
        end = last
        for number in range(last + 1, len(lines)):
            text = lines[number]
            if text.strip() and len(text) - len(text.lstrip()) <= len(head["indent"]):
                break
            end = number if text.strip() else end
        yield line.strip(), end - first + 1


@pytest.mark.parametrize("suffix", [".py", ".pyx", ".pxd"])
def test_no_function_is_longer_than_a_reader_can_hold(suffix: str) -> None:
    functions = python_functions if suffix == ".py" else cython_functions
    long = [
        f"{path.relative_to(ROOT)}: {name} has {lines} lines"
        for path in sources(suffix)
        for name, lines in functions(path)
        if lines > MAX_LINES
    ]
    assert not long

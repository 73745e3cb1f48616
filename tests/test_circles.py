"""No module imports itself at run time, through whatever others: imports in functions count, those for types don't."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.syntax_trees import tree_of

PACKAGE = Path(__file__).parents[1] / "buddysim"
#: Operators' gradients are operators (of a sum a view, of a view a sum), and tensors have all of them as methods.
FORMULAS = "buddysim.training.autograd."
CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
    r"|c?import[ \t]+(?P<plain>[\w.]+))",
    re.MULTILINE,
)


def modules(package: Path) -> dict[str, Path]:
    """Return for each module's dotted name its file; the declarations of a Cython module are one of their own."""
    names = {}
    for suffix in (".py", ".pyx", ".pxd"):
        for path in package.rglob(f"*{suffix}"):
            parts = [package.name, *path.relative_to(package).with_suffix("").parts]
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            names[f"{name}.pxd" if suffix == ".pxd" else name] = path
    return names


def statements_within(statements: Sequence[ast.AST], types: bool) -> Iterator[ast.AST]:
    """Return statements and those within them; those under ``if TYPE_CHECKING`` only if `types`."""
    for statement in statements:
        yield statement
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            is_for_types = name == "body" and getattr(getattr(statement, "test", None), "id", "") == "TYPE_CHECKING"
            if types or not is_for_types:
                yield from statements_within(getattr(statement, name, ()), types)


def python_names(path: Path, types: bool = False) -> Iterator[str]:
    """Return the dotted names that a Python file imports as it runs or for types, arguments of `import_module` too."""
    for node in statements_within(tree_of(path).body, types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    yield from re.findall(r"""\bimport_module\(["']([\w.]+)["']""", path.read_text(encoding="utf-8"))


def cython_names(path: Path, within: str) -> Iterator[str]:
    """Return the dotted names that a Cython file imports; what it `cimports` are declarations, its own too."""
    if path.suffix == ".pyx" and path.with_suffix(".pxd").exists():
        yield f"{within}.{path.stem}.pxd"
    for statement in CYTHON_IMPORT.finditer(path.read_text(encoding="utf-8")):
        suffix = ".pxd" if re.search(r"\bcimport\b", statement[0]) else ""
        if statement["plain"]:
            yield statement["plain"] + suffix
        else:
            names = re.findall(r"(\w+)(?:\s+as\s+\w+)?", statement["names"])
            yield from (f"{statement['module']}.{name}{suffix}" for name in names)


def module_named(name: str, files: Mapping[str, Path]) -> str | None:
    """Return the module that a dotted name is, or is defined in."""
    suffix = ".pxd" if name.endswith(".pxd") else ""
    parent = name.removesuffix(suffix).rpartition(".")[0] + suffix
    return name if name in files else parent if parent in files else None


def imports(package: Path, types: bool = False) -> dict[str, set[str]]:
    """Return for each module of a package the modules of it that it names in an import; in one for types if `types`."""
    files = modules(package)
    graph = {}
    for name, path in files.items():
        within = ".".join([package.name, *path.relative_to(package).parent.parts])
        names = python_names(path, types) if path.suffix == ".py" else cython_names(path, within)
        graph[name] = {module for text in names if (module := module_named(text, files))} - {name}
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that reach each other (strongly connected components; Tarjan 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    components: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        path.append(name)
        for imported in sorted(graph[name]):
            if imported not in number:
                visit(imported)
                low[name] = min(low[name], low[imported])
            elif imported in path:
                low[name] = min(low[name], number[imported])
        if low[name] == number[name]:
            circle = path[path.index(name) :]
            del path[path.index(name) :]
            if len(circle) > 1:
                components.append(sorted(circle))

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return components


def test_no_module_imports_itself_through_others() -> None:
    wrong = [circle for circle in circles(imports(PACKAGE)) if not all(name.startswith(FORMULAS) for name in circle)]
    assert not wrong, "\n".join(" <-> ".join(circle) for circle in wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from made import second", [["made.first", "made.second"]]),
        ("def late():\n    import made.second", [["made.first", "made.second"]]),
        ("def late():\n    return import_module('made.second')", [["made.first", "made.second"]]),
        ("if TYPE_CHECKING:\n    from made.second import NAME", []),
        ("from made.third import NAME", []),
    ],
)
def test_circles_are_found(tmp_path: Path, text: str, expected: list[list[str]]) -> None:
    package = tmp_path / "made"
    package.mkdir()
    for name, content in {"__init__": "", "first": text, "second": "from made.first import NAME", "third": ""}.items():
        (package / f"{name}.py").write_text(content, encoding="utf-8")
    assert circles(imports(package)) == expected


def test_a_cython_module_and_its_declarations_are_two(tmp_path: Path) -> None:
    package = tmp_path / "made"
    package.mkdir()
    for name, content in {
        "first.pxd": "",
        "first.pyx": "from made.second cimport (\n    this, that,\n)\n",
        "second.pxd": "cimport made.first\n",
        "second.pyx": "",
    }.items():
        (package / name).write_text(content, encoding="utf-8")
    assert circles(imports(package)) == []
    (package / "first.pxd").write_text("from made cimport second\n", encoding="utf-8")
    assert circles(imports(package)) == [["made.first.pxd", "made.second.pxd"]]

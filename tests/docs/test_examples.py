"""The examples run: the scripts as they are, the notebook cell by cell, each value shown as a notebook shows it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_the_list_names_every_example() -> None:
    listed = re.findall(r"\]\((\w+\.\w+)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.name for path in [*SCRIPTS, *NOTEBOOKS])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(script: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2


def shown(value: object) -> str:
    """What a notebook shows of the last expression of a cell."""
    for form in ("_repr_png_", "_repr_html_"):
        if hasattr(value, form):
            made = getattr(value, form)()
            return "a figure" if isinstance(made, bytes) and made.startswith(b"\x89PNG") else str(made)
    return repr(value)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="pandas isn't installed: pip install 'buddysim[data]'")
    monkeypatch.chdir(tmp_path)
    content = json.loads(notebook.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    outputs = []
    for cell in content["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(notebook), "exec"), names)
        if isinstance(last, ast.Expr):
            outputs.append(shown(eval(compile(ast.Expression(last.value), str(notebook), "eval"), names)))
    assert any("compression ratio" in output for output in outputs)
    assert any("a figure" in output for output in outputs)

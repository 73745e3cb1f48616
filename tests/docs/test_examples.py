"""The examples run: the scripts as they are, the notebook cell by cell, each value shown as a notebook shows it."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from buddysim import SchemeResults
from tests.capture.opencl.running import needs_opencl
from tests.docs.shown import MIN_CHANGE, change

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
#: The number that each script is about, in every line that it prints.
ABOUT = {
    "link_sweep": r"([\d.,]+) times the time of ideal",
    "own_machine": r": ([\d.,]+) us",
    "training": r"stalls ([\d.,]+) ms",
}


def test_the_list_names_every_example() -> None:
    listed = re.findall(r"\]\((\w+\.\w+)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.name for path in [*SCRIPTS, *NOTEBOOKS])


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(script: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    numbers = [float(number.replace(",", "")) for number in re.findall(ABOUT[script.stem], done.stdout)]
    assert len(numbers) == len(done.stdout.splitlines()) >= 2
    assert all(change(*pair) > MIN_CHANGE for pair in itertools.pairwise(numbers)), numbers
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    if script.stem == "link_sweep":
        traces = (ROOT / "traces" / "README.md").read_text(encoding="utf-8")
        assert re.findall(r"^\| \d+ GB/s.*\| ([\d.]+) \|$", traces, re.MULTILINE) == [f"{n:.2f}" for n in numbers]
        assert f"{numbers[0]:.1f} times at 50 GB/s, {numbers[-1]:.1f} times at 300 GB/s" in listed
    if script.stem == "own_machine":
        assert f"{numbers[0]} us become {numbers[1]} us" in listed


@pytest.mark.slow
def test_the_program_of_the_kv_caches_runs(tmp_path: Path) -> None:
    """With smaller caches than the trace's."""
    pytest.importorskip("pyopencl")
    needs_opencl()
    command = [sys.executable, str(ROOT / "docs" / "examples" / "kv_cache.py"), "4", "128", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert re.fullmatch(r"\d+ tokens of 4 conversations; [\d.]+% of the caches is in use", first)
    assert re.fullmatch(r"newest tokens( \d+){4}", second)


def shown(value: object) -> str:
    """Return a notebook's display of the last expression of a cell."""
    for form in ("_repr_png_", "_repr_html_"):
        if hasattr(value, form):
            made = getattr(value, form)()
            return "a figure" if isinstance(made, bytes) and made.startswith(b"\x89PNG") else str(made)
    return repr(value)


@pytest.mark.slow
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
    results = names["results"]
    assert isinstance(results, SchemeResults)
    assert (results["buddy"].slowdown["ratio"] or 0) > 1 + MIN_CHANGE
    assert any("compression ratio" in output for output in outputs)
    assert any("a figure" in output for output in outputs)

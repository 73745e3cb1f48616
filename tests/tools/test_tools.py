"""The conversion commands of `tools/`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from buddysim.trace import open_trace
from tests.importers.opencl.captures import write_bundle

TOOLS = Path(__file__).parents[2] / "tools"


def load(name: str) -> ModuleType:
    """Load a script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_convert_opencl_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = load("convert_opencl_bundle")
    bundle = write_bundle(tmp_path / "bundle")
    out = tmp_path / "out.bin"
    arguments = [str(bundle), "-o", str(out), "--launches", "1:3", "--contents-every", "0", "--licence", "MIT"]
    assert tool.main(arguments) == 0
    assert "2 kernels, 36 warp operations, 1152 lane accesses, 2 snapshots" in capsys.readouterr().out
    with open_trace(out) as trace:
        assert trace.provenance.licence == "MIT"
        assert trace.provenance.command.startswith("tools/convert_opencl_bundle.py ")
    assert tool.main([str(tmp_path / "nothing"), "-o", str(out)]) == 2
    assert tool.main([str(bundle), "-o", str(out), "--contents-every", "-1"]) == 2
    assert tool.main([str(bundle), "-o", str(out), "--launches", "7:9"]) == 2
    assert capsys.readouterr().err.count("convert_opencl_bundle.py: error: ") == 3
    with pytest.raises(SystemExit):
        tool.main([str(bundle), "-o", str(out), "--launches", "3:1"])


def test_make_traces_reports_missing_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = load("make_traces")
    assert tool.main(["--shared", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    (tmp_path / "data").mkdir()
    assert tool.main(["--shared", str(tmp_path), "-o", str(tmp_path / "out"), "jacobi2048"]) == 2
    assert tool.main(["--shared", str(tmp_path), "-o", str(tmp_path / "out"), "unheard"]) == 2
    errors = capsys.readouterr().err
    assert errors.count("make_traces.py: error: ") == 3
    assert "jacobi2048.tar.xz" in errors


def test_recipe_names_are_unique() -> None:
    tool = load("make_traces")
    names = [recipe.name for recipe in (*tool.SMALL, *tool.LARGE)]
    assert len(set(names)) == len(names)

"""The site of the documents and the API's reference: it builds, without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import buddysim

ROOT = Path(__file__).parents[2]


def test_the_reference_names_every_public_name() -> None:
    reference = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    missing = [name for name in buddysim.__all__ if name not in reference and name != "__version__"]
    assert not missing


@pytest.mark.slow
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx isn't installed: pip install 'buddysim[docs]'")
    pytest.importorskip("myst_parser", reason="myst-parser isn't installed: pip install 'buddysim[docs]'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(ROOT / "docs"), str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    assert "buddysim.simulate" in page
    assert "Buddy Threshold of that profile" in page

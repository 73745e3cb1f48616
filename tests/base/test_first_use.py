"""Names of packages that load on first use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import buddysim

ROOT = Path(buddysim.__file__).parent
PACKAGES = [path.parent for path in ROOT.rglob("__init__.py") if "names_on_first_use(" in path.read_text("utf-8")]


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda path: path.name)
def test_no_name_is_that_of_a_module(folder: Path) -> None:
    """Python sets a package's attribute to a module of that name when it is imported, in place of the function."""
    package = import_module(".".join(["buddysim", *folder.relative_to(ROOT).parts]))
    members = {path.stem for path in folder.iterdir()}
    assert package._HOMES.keys() & members == set()

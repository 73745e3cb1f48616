"""The folders that stand beside the package are found, and refused by name where they are missing."""

from __future__ import annotations

import pytest

from buddysim import beside
from buddysim.errors import BuddysimError


@pytest.mark.parametrize("name", ["tools", "plots"])
def test_a_folder_of_the_clone(name):
    assert (beside.folder(name) / "__init__.py").is_file()


def test_a_folder_that_is_nowhere():
    with pytest.raises(BuddysimError, match=r"nosuch/: not found beside the package"):
        beside.folder("nosuch")

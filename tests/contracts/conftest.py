"""Plug-ins of one test."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from buddysim.base import plugin_modules


@pytest.fixture
def own_plugins() -> Iterator[None]:
    """Forget the plug-ins that a test loads."""
    before = set(plugin_modules.loaded)
    yield
    for file in set(plugin_modules.loaded) - before:
        del sys.modules[plugin_modules.loaded.pop(file).__name__]

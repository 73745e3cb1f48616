"""``import buddysim`` provides the public names and loads no heavy module."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys

import pytest

import buddysim


def test_every_public_name_is_there():
    for name in buddysim.__all__:
        assert getattr(buddysim, name) is not None
        assert name in dir(buddysim)
    assert buddysim.compress.compressed_bits(bytes(128)).tolist() == [10]


def test_packages_load_at_first_use():
    code = "import buddysim; print(buddysim.training.simulate is buddysim.simulate_training)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "True"


def test_dir_shows_public_names_only():
    assert dir(buddysim) == sorted(buddysim.__all__)
    assert dir(buddysim.training) == sorted(buddysim.training.__all__)


def test_help_of_training_shows_real_parameters():
    signature = inspect.signature(buddysim.training.simulate)
    assert "keywords" not in signature.parameters
    assert signature.parameters["pool_policy"].default == "best-fit"
    assert {"optimizer", "synthetic_density", "buddy_ratio", "gist_allocator"} <= set(signature.parameters)
    shown = pydoc.render_doc(buddysim.training.simulate)
    assert all(f"{name} : " in shown for name in signature.parameters)
    assert buddysim.training.simulate("alexnet-cifar10", 4, memory_bytes=1 << 30).counters["fits"]


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        buddysim.nothing  # noqa: B018


def test_importing_loads_no_heavy_module():
    code = "import buddysim, sys; print([n for n in ('numpy', 'pydantic', 'matplotlib', 'rich') if n in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "[]"


def test_the_command_lines_help_loads_neither_engine_nor_plots():
    code = (
        "import sys\nfrom buddysim.cli import make_parser\nmake_parser()\n"
        "print([n for n in ('buddysim.replay', 'buddysim.synthetic', 'matplotlib', 'scipy') if n in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "[]"

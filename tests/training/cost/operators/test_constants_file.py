"""Files of constants of operators: what isn't what `buddysim calibrate` writes is named; bugs are not the file's."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.cost.operators import constants
from buddysim.training.cost.operators.constants import parse_constants

TEXT = (resources.files("buddysim.training.cost") / "data" / "operators" / "h100-sxm.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"floor_us = 1.7643", 'floor_us = "x"', "memory.floor_us: expected a number, got 'x'"),
        (r"floor_us = 1.7643", "floor_us = -1", "memory.floor_us: expected at least 0, got -1"),
        (r"floor_us = 1.7643", "", "memory.floor_us is missing"),
        (r"sharpness = 1.5", "sharpness = 1e300", "memory.sharpness: expected at most 32"),
        (r"bandwidth = 0.847", "bandwidth = 0", "products.bf16.bandwidth: expected at least 1e-06, got 0"),
        (r"norm = 0.5886", "", "memory.bandwidth: expected a value for each of elementwise, norm,"),
        (r'kernel = "flash3"', 'kernel = "x"', "attention.flash3.kernel: expected one of flash2,"),
        (r"\[calls_us\]", "[launch_us]\nx = 3\n[calls_us]", "launch_us: expected names among forward,"),
        (r"\[calls_us\]", '[products.fp8]\ntiles = ["0x3"]\n[calls_us]', "products.fp8.floor_us is missing"),
        (r"machine = .*", "", "machine is missing"),
        (r"\[memory\]", "[memory]\nfoo = 3", "memory.foo: expected one of floor_us,"),
    ],
)
def test_a_wrong_value_is_named(old: str, new: str, message: str) -> None:
    changed, count = re.subn(old, new, TEXT, count=1)
    assert count
    with pytest.raises(BuddysimError) as raised:
        parse_constants(changed, "f.toml")
    assert str(raised.value).startswith(f"f.toml: {message}")


def test_a_bug_is_not_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "checked_json", {}.__getitem__)
    with pytest.raises(TypeError):
        parse_constants(TEXT, "f.toml")

"""Names of functions in a program's file, which may be damaged: then there are fewer, and no error."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from buddysim.base import _cython_shared
from buddysim.capture.memory import symbols
from buddysim.capture.memory.symbols import Elf

EXTENSION = Path(_cython_shared.__file__)


def test_a_function_is_known_by_its_address() -> None:
    elf = Elf(str(EXTENSION))
    assert elf.segments
    address = int(elf._starts[0])
    assert elf.function_at(address + 1) == (elf.function_at(address)[0], 1)  # type: ignore[index]


def test_a_damaged_file_is_no_error(tmp_path: Path) -> None:
    content, numbers, path = EXTENSION.read_bytes(), random.Random(3), tmp_path / "x.so"
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[numbers.choice((numbers.randrange(24, 64), numbers.randrange(-2600, 0)))] = numbers.randrange(256)
        path.write_bytes(damaged[: numbers.choice((len(damaged), numbers.randrange(len(damaged))))])
        Elf(str(path)).function_at(numbers.randrange(1 << 20))
    assert Elf(str(tmp_path / "absent")).segments == []


def test_a_bug_is_not_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "_section", {}.__getitem__)
    with pytest.raises(TypeError):
        Elf(str(EXTENSION))

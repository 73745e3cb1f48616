"""Compilation of captures at first use: the cache, errors, and generated headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.capture.compilation import compiled_sources
from buddysim.capture.opencl.generated_headers import headers
from buddysim.trace import records

#: Core cycles until a result is ready, and between two instructions of a scheduler (Accel-Sim's SM7_GV100).
#: One instruction a cycle of the pipe to shared memory, which four schedulers share, is one in four of each.
SM_70 = {
    "INTEGER": (2, 2),
    "SINGLE": (2, 2),
    "DOUBLE": (8, 4),
    "SPECIAL": (20, 8),
    "BRANCH": (4, 4),
    "SHARED": (20, 4),
}

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is missing; apt install g++")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "buddysim"


def build(source: Path, **options: object) -> Path:
    return compiled_sources("some/thing", ".so", ["g++", "-shared", "-fPIC"], [source], "it fails", **options)  # type: ignore[arg-type]


def test_the_same_is_compiled_once(tmp_path: Path, empty_cache: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text('#include "made.h"\nint value() { return VALUE; }\n')
    first = build(source, generated={"made.h": "#define VALUE 1\n"})
    assert first.parent == empty_cache / "some"
    stamp = first.stat().st_mtime_ns
    assert build(source, generated={"made.h": "#define VALUE 1\n"}) == first
    assert first.stat().st_mtime_ns == stamp
    other = build(source, generated={"made.h": "#define VALUE 2\n"})
    assert other != first
    assert sorted(path.name for path in (empty_cache / "some").iterdir()) == sorted([first.name, other.name])


def test_the_first_error_is_named(tmp_path: Path, empty_cache: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text("int value() { return nothing; }\n")
    with pytest.raises(BuddysimError, match=r"^it fails: .*a\.cpp:1:22: error: .*nothing") as raised:
        build(source)
    assert "\n" not in str(raised.value)
    assert not list((empty_cache / "some").iterdir())


def test_a_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is only a cache: one line says so, and the capture goes on."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    source = tmp_path / "a.cpp"
    source.write_text("int value() { return 1; }\n")
    assert build(source).is_file()
    assert "cache" in capsys.readouterr().err


def test_the_headers_have_the_layout_of_the_dtypes_and_the_times_of_units(tmp_path: Path) -> None:
    dtypes = {"WarpOp": records.OP_DTYPE, "WarpRecord": records.WARP_DTYPE, "BlockRecord": records.BLOCK_DTYPE}
    checks = [
        f"static_assert(offsetof(capture::{name}, {field}) == {dtype.fields[field][1]});"
        for name, dtype in dtypes.items()
        for field in dtype.names
    ]
    checks += [f"static_assert(sizeof(capture::{name}) == {dtype.itemsize});" for name, dtype in dtypes.items()]
    named = {name: value for name, value in vars(records).items() if name.startswith(("OP_", "FLAG_"))}
    constants = {name: value for name, value in named.items() if isinstance(value, int)}
    checks += [f"static_assert(capture::{name} == {value});" for name, value in constants.items()]
    assert len(checks) > 30
    for header, text in headers().items():
        (tmp_path / header).write_text(text)
    for unit, (latency, busy) in SM_70.items():
        checks.append(f"static_assert(capture::LATENCY[capture::{unit}] == {latency});")
        checks.append(f"static_assert(capture::UNIT_CYCLES[capture::{unit}] == {busy});")
    source = tmp_path / "check.cpp"
    source.write_text(
        "\n".join(["#include <cstddef>", '#include "trace_records.h"', '#include "units.h"', *checks, ""])
    )
    subprocess.run(["g++", "-std=c++17", "-fsyntax-only", str(source)], check=True)


@pytest.mark.parametrize("slow", [False, True])
def test_slow_compilation_is_announced_once(slow: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message about compilation appears in a pipe too, and only if something is compiled."""
    source = tmp_path / "a.cpp"
    source.write_text("int value() { return 1; }\n")
    build(source, slow=slow)
    build(source, slow=slow)
    expected = "buddysim: compiling the capture (thing): the first time on this machine only, up to half a minute\n"
    assert capsys.readouterr().err == expected * slow

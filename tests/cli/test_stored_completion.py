"""A completion script is stored, and made anew when anything changes that its names come from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from buddysim.base import plugins
from buddysim.cli import main, stored_completion
from buddysim.cli.stored_completion import store_script, stored_script

COMMAND = """
NAME, TASK, HELP = "name-of-mine", "look", "does nothing"
def add_arguments(parser): ...
def run(args): return 0
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the stored scripts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "buddysim" / "completion"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of sources that stands for the package's: no test changes that one."""
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "networks.toml").write_text("a = 1")
    monkeypatch.setattr(stored_completion, "_PACKAGE", package)
    monkeypatch.setattr(stored_completion, "_MANIFEST", tmp_path / "MANIFEST.toml")
    return package


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr()
    assert (ended.value.code, shown.err) == (0, "")
    return shown.out


def test_the_second_script_is_the_stored_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = printed(capsys, "--print-completion", "bash")
    (stored,) = folder.iterdir()
    assert stored_script("bash", []) == first.removesuffix("\n")
    time = stored.stat().st_mtime_ns
    assert printed(capsys, "--print-completion=bash") == first
    assert stored.stat().st_mtime_ns == time


def test_another_shell_and_another_version_have_their_own_script(monkeypatch: pytest.MonkeyPatch) -> None:
    store_script("bash", "made")
    assert stored_script("bash", []) == "made"
    assert stored_script("zsh", []) is None
    monkeypatch.setattr("buddysim.__version__", "0.0.1")
    assert stored_script("bash", []) is None


@pytest.mark.parametrize("change", ["content", "time", "new file", "no file", "manifest"])
def test_no_script_of_other_sources_is_taken(sources: Path, change: str) -> None:
    store_script("bash", "made")
    assert stored_script("bash", []) == "made"
    file = sources / "inner" / "networks.toml"
    if change == "content":
        status = file.stat()
        file.write_text("a = 12")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "time":
        os.utime(file, ns=(0, 0))
    elif change == "new file":
        (sources / "scheme.py").touch()
    elif change == "no file":
        file.unlink()
    else:
        (sources.parent / "MANIFEST.toml").touch()
    assert stored_script("bash", []) is None


@pytest.mark.slow
def test_a_changed_plugin_gets_its_own_script(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(COMMAND)
    command = [sys.executable, "-m", "buddysim", "--plugin", str(plugin), "--print-completion", "bash"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "name-of-mine" in shown
    assert stored_script("bash", [str(plugin)]) == shown.removesuffix("\n")
    assert stored_script("bash", []) is None
    plugin.write_text(COMMAND.replace("name", "home"))
    assert stored_script("bash", [str(plugin)]) is None


def test_a_changed_package_of_plugins_gets_its_own_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "as_it_is.py").touch()
    (tmp_path / "foreign-1.0.dist-info").mkdir()
    (tmp_path / "foreign-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    entry_points = tmp_path / "foreign-1.0.dist-info" / "entry_points.txt"
    entry_points.write_text("[buddysim.plugins]\nmine = foreign.as_it_is\n")
    without = stored_completion._name("bash")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.entries.cache_clear()
    try:
        store_script("bash", "made")
        assert stored_completion._name("bash") != without
        assert stored_script("bash", []) == "made"
        (tmp_path / "foreign" / "as_it_is.py").write_text("changed")
        assert stored_script("bash", []) is None
        assert "foreign" not in sys.modules
    finally:
        monkeypatch.undo()
        plugins.entries.cache_clear()


@pytest.mark.parametrize("content", [b"", b"made", b"0\nmade"])
def test_a_damaged_script_is_not_taken(folder: Path, content: bytes) -> None:
    store_script("bash", "made")
    (stored,) = folder.iterdir()
    stored.write_bytes(content)
    assert stored_script("bash", []) is None
    store_script("bash", "made")
    assert stored_script("bash", []) == "made"


def test_a_script_that_others_may_write_is_not_taken(folder: Path) -> None:
    store_script("bash", "made")
    (stored,) = folder.iterdir()
    stored.chmod(0o666)
    assert stored_script("bash", []) is None


def test_without_a_cache_the_script_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    shown = capsys.readouterr()
    assert ended.value.code == 0
    assert "_shtab_buddysim" in shown.out
    assert "error" not in shown.err

"""A change selects the tests that it can affect: by imports, by files that were read, by commands; in doubt all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.affected import affected, files_of_tests, reached
from tests.noted_reads import KEY, ROOT

#: A small repository: the text of each file by its path.
FILES = {
    "buddysim/__init__.py": "",
    "buddysim/__main__.py": "from buddysim.cli import main\n",
    "buddysim/cli/__init__.py": "REGISTRY = Registry('command', __name__)\n",
    "buddysim/cli/train.py": "def run():\n    from buddysim.training import step\n",
    "buddysim/cli/machines.py": "from buddysim import machine\n",
    "buddysim/machine/__init__.py": "",
    "buddysim/machine/presets/v100.toml": "",
    "buddysim/replay/__init__.py": "REGISTRY = Registry('scheme', __name__)\n",
    "buddysim/replay/link.pxd": "",
    "buddysim/replay/link.pyx": "from buddysim.replay cimport link\n",
    "buddysim/training/__init__.py": "",
    "buddysim/training/step.py": "",
    "tests/conftest.py": "",
    "tests/builders.py": "",
    "tests/test_prose.py": "from buddysim.cli import main\n",
    "tests/replay/test_replay.py": "import buddysim.replay\nfrom tests.builders import build\n",
    "tests/cli/conftest.py": "",
    "tests/cli/test_train.py": "import subprocess\ncommand = ['-m', 'buddysim', 'train', 'alexnet']\n",
    "tests/cli/test_machines.py": "from buddysim.cli import main\nmain('machines --toml'.split())\n",
}
PROSE, REPLAY = "tests/test_prose.py", "tests/replay/test_replay.py"
TRAIN, MACHINES = "tests/cli/test_train.py", "tests/cli/test_machines.py"
EVERY = {PROSE, REPLAY, TRAIN, MACHINES}
NOTED = {PROSE: ["docs/a.md", "docs/train.txt"], REPLAY: ["traces/a.bin"], TRAIN: [], MACHINES: []}
TEST_PLUGIN = """from tests import noted_reads
def pytest_configure(config):
    config.pluginmanager.register(noted_reads.NotedReads(config))
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (REPLAY, {REPLAY}),
        ("tests/builders.py", {REPLAY}),
        ("buddysim/replay/link.pxd", {REPLAY}),  # through the registry and a Cython file
        ("buddysim/training/step.py", {PROSE, TRAIN}),  # a page may name any command
        ("buddysim/cli/machines.py", {PROSE, MACHINES}),
        ("buddysim/cli/__init__.py", {PROSE, TRAIN, MACHINES}),
        ("buddysim/machine/presets/v100.toml", {PROSE, MACHINES}),
        ("buddysim/__init__.py", EVERY),
        ("docs/a.md", {PROSE}),
        ("docs/a-new-page.md", {PROSE}),
        ("traces/a.bin", {REPLAY}),
        ("tests/cli/conftest.py", {TRAIN, MACHINES}),
        ("tests/conftest.py", EVERY),
        ("pyproject.toml", EVERY),
        ("a-file-that-nobody-reads", EVERY),
    ],
)
def test_a_change_selects(changed: str, expected: set[str], repository: Path) -> None:
    assert affected({changed}, files_of_tests(NOTED, repository), repository) == sorted(expected)


def test_a_test_without_notes_runs(repository: Path) -> None:
    noted = {name: paths for name, paths in NOTED.items() if name != MACHINES}
    assert affected({"traces/a.bin"}, files_of_tests(noted, repository), repository) == [MACHINES, REPLAY]
    assert affected({"traces/a.bin"}, files_of_tests({}, repository), repository) == sorted(EVERY)
    assert affected((), files_of_tests(NOTED, repository), repository) == []


def test_modules_that_import_each_other_are_reached_once() -> None:
    assert reached(["a"], {"a": {"b"}, "b": {"a", "c"}, "c": set(), "d": {"a"}}) == {"a", "b", "c"}


@pytest.mark.slow
def test_files_and_arguments_are_noted(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(TEST_PLUGIN)
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\nfrom pathlib import Path\n"
        f"AT_IMPORT = Path({str(ROOT / 'LICENSE')!r}).read_text()\n"
        f"def test_one():\n    open({str(ROOT / 'README.md')!r}).close()\n"
        f"def test_two():\n    subprocess.run([sys.executable, '-c', '', {str(ROOT / 'CHANGELOG.md')!r}])\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:hypothesispytest"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    noted = tmp_path / ".pytest_cache" / "v" / KEY
    assert noted.read_text().split('"')[1::2] == ["test_it.py", "CHANGELOG.md", "LICENSE", "README.md"]

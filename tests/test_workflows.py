"""The workflows of .github: they call targets that the Makefile has, on the Python versions of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools.check_release import problems

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="the tests are not in a source tree")


def steps(path: Path) -> list[dict[str, str]]:
    """Return the steps of all jobs of a workflow."""
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_is_a_target_of_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"].split() for step in steps(path) if "run" in step]
    assert commands
    for make, target, *_ in commands:
        assert make == "make"
        assert target in targets


def test_the_tests_run_on_every_declared_python() -> None:
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    versions = tests["jobs"]["test"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [entry.rpartition(" ")[2] for entry in project["classifiers"] if re.search(r"Python :: 3\.\d+$", entry)]
    assert versions == declared
    assert project["requires-python"] == f">={versions[0]}"
    assert any(step.get("run", "").startswith("make test") for step in tests["jobs"]["test"]["steps"])


def test_other_workflows_use_the_oldest_python() -> None:
    oldest = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["test"]["strategy"]
    for path in WORKFLOWS:
        versions = [step["with"]["python-version"] for step in steps(path) if "python-version" in step.get("with", {})]
        assert {*versions} in ({oldest["matrix"]["python"][0]}, {"${{ matrix.python }}"})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_an_action_is_named_by_its_commit(path: Path) -> None:
    """A tag can be moved to other code; the comment names the version, which dependabot raises with the commit."""
    used = re.findall(r"^\s+(?:- )?uses: (.*)$", path.read_text(), re.MULTILINE)
    assert used
    for action in used:
        if action.startswith("./"):  # another workflow of this commit
            assert (ROOT / action).is_file()
            continue
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


def test_wheels_are_of_every_declared_python_and_of_both_processors() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = [entry for entry in project["project"]["classifiers"] if re.search(r"Python :: 3\.\d+$", entry)]
    built = [f"cp{entry.rpartition(' ')[2].replace('.', '')}-*" for entry in declared]
    assert project["tool"]["cibuildwheel"]["build"] == built
    wheels = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())
    machines = wheels["jobs"]["wheels"]["strategy"]["matrix"]["machine"]
    assert {"ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "macos-15-intel"} == set(machines)


def test_a_release_names_one_version(tmp_path: Path) -> None:
    """Between releases the package, CITATION.cff and the newest section of the changes agree; at a tag all four."""
    assert problems(None) == []
    (tmp_path / "buddysim").mkdir()
    for name, text in (
        ("buddysim/__init__.py", '__version__ = "1.2.0"\n'),
        ("CITATION.cff", "version: 1.2.0\n"),
        ("CHANGELOG.md", "# Changes\n\n## 1.2.0\n\n## 1.1.0\n"),
    ):
        (tmp_path / name).write_text(text)
    assert problems("v1.2.0", tmp_path) == []
    assert problems("v1.2.1", tmp_path) == ["the tag: 1.2.1: expected 1.2.0"]
    (tmp_path / "CITATION.cff").write_text("version: 1.1.0\n")
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 1.1.0\n")
    assert [line.partition(":")[0] for line in problems("v1.2.0", tmp_path)] == [
        "CITATION.cff", "CHANGELOG.md", "CHANGELOG.md, at its top",
    ]  # fmt: skip
    assert len(problems(None, tmp_path)) == 2

"""How-to pages of plug-ins: an example is the file shown, and works as a plug-in and as a file of the package."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from buddysim.base.compiled import compiled_extension
from buddysim.base.kinds import HOMES, registry
from buddysim.base.plugin_modules import PACKAGE
from buddysim.cli import main
from buddysim.figures import ResultSource
from tests.capture.opencl.running import needs_opencl

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to"
#: The page of each kind; a machine is described, not added.
PAGES = {kind: f"add-{'an' if kind[0] in 'aeiouL' else 'a'}-{kind.lower().replace(' ', '-')}.md" for kind in HOMES}
PAGES["machine"] = "describe-a-machine.md"
EXAMPLE = r"^Example: \[`[\w.]+`\]\((\.\./examples/plugins/[\w.]+)\); its folder is\s`(buddysim/[\w/]+)/`"


@dataclass(frozen=True)
class Example:
    """A page's example: its file, its folder in the package, and commands that use it."""

    file: Path
    folder: str
    shown: str
    commands: tuple[str, ...]


def examples() -> Iterator[Example]:
    for name in PAGES.values():
        page = (HOW_TO / name).read_text(encoding="utf-8")
        ((file, folder),) = re.findall(EXAMPLE, page, flags=re.M)
        section = page[re.search(EXAMPLE, page, flags=re.M).start() :]  # type: ignore[union-attr]
        shown, *_ = re.findall(r"^```(?:python|cython|toml)\n(.*?)^```", section, flags=re.M | re.S)
        shell, *_ = re.findall(r"^```sh\n(.*?)^```", section, flags=re.M | re.S)
        yield Example((HOW_TO / file).resolve(), folder, shown, tuple(shell.replace("\\\n", "").strip().splitlines()))


EXAMPLES = list(examples())


parametrized = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.file.stem)


def prepare(commands: tuple[str, ...], folder: Path) -> list[list[str]]:
    """Give a folder the checkout's traces and documents; return the commands' words behind ``python``."""
    for name in ("traces", "docs"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    (folder / "out").mkdir(exist_ok=True)
    if any(" workloads " in command for command in commands):
        pytest.importorskip("pyopencl")
        needs_opencl()
    words = [shlex.split(command) for command in commands]
    assert {(*each[:3],) for each in words} == {("python", "-m", "buddysim")}
    return [each[1:] for each in words]


def run(commands: tuple[str, ...], folder: Path, package_parent: Path) -> str:
    """Run commands in a folder, each in a process of its own; return what they print."""
    environment = os.environ | {"PYTHONPATH": str(package_parent)}  # what is compiled stays in the user's cache
    printed = ""
    for words in prepare(commands, folder):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
        printed += done.stdout
    return printed


def package_with(example: Example, folder: Path) -> Path:
    """Copy the package into a folder, add exactly this file, build a Cython file as the others are; return the file."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "buddysim", folder / "buddysim", ignore=ignored)
    added = folder / example.folder / example.file.name.replace("_", "-" if example.file.suffix == ".toml" else "_")
    assert added.parent.is_dir()
    shutil.copyfile(example.file, added)
    if added.suffix == ".pyx":
        module = ".".join(added.relative_to(folder).with_suffix("").parts)
        library = folder / "built" / f"{added.stem}.so"
        library.parent.mkdir()
        compiler = folder / "buddysim" / "base" / "compile_plugin.py"
        subprocess.run([sys.executable, str(compiler), str(added), module, str(library)], check=True, cwd=folder)
        library.rename(added.with_suffix(".so"))
    return added


def test_every_kind_has_its_page() -> None:
    """The common page links all of them, and every example file is on one."""
    common = (HOW_TO / "add-a-plugin.md").read_text(encoding="utf-8")
    assert [name for name in PAGES.values() if f"({name})" not in common] == []
    assert {path.name for path in HOW_TO.glob("add-a*.md")} == {*PAGES.values(), "add-a-plugin.md"} - {PAGES["machine"]}
    folder = HOW_TO.parent / "examples" / "plugins"
    files = {path for path in folder.iterdir() if path.suffix in (".py", ".pyx", ".toml")}
    assert files == {example.file for example in EXAMPLES}


@parametrized
def test_the_document_shows_the_file(example: Example) -> None:
    assert example.shown == example.file.read_text(encoding="utf-8")
    assert len(example.shown.splitlines()) <= 80


@pytest.mark.slow
@parametrized
def test_an_example_works_from_outside_the_package(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A compiled example is tried in processes of its own, as a process keeps the code that it has loaded."""
    if example.file.suffix == ".pyx":
        assert run(example.commands, tmp_path, ROOT)
        return
    monkeypatch.chdir(tmp_path)
    for words in prepare(example.commands, tmp_path):
        assert main(words[2:]) == 0
        shown = capsys.readouterr()
        assert shown.out + shown.err


@pytest.mark.slow
@parametrized
def test_an_example_works_as_one_more_file_of_the_package(example: Example, tmp_path: Path) -> None:
    added = package_with(example, tmp_path)
    without = [re.sub(r" --plugin \S+", "", command) for command in example.commands]
    if added.suffix == ".toml":
        without = [command.replace(f"docs/examples/plugins/{example.file.name}", added.stem) for command in without]
    assert run(tuple(without), tmp_path, tmp_path)


@parametrized
def test_nothing_of_an_example_is_known_without_it(example: Example) -> None:
    for kind in HOMES:
        assert example.file.stem.replace("_", "-") not in registry(kind)


@pytest.fixture(scope="module")
def first_touch() -> Path:
    """The example of a replay scheme, compiled into the cache of its user."""
    source = ROOT / "docs" / "examples" / "plugins" / "first_touch.pyx"
    compiled_extension(source, f"{PACKAGE}.{source.stem}")
    return source


@pytest.mark.slow
def test_scheme_reports_its_device_memory_and_gets_the_equal_capacity(first_touch: Path, tmp_path: Path) -> None:
    """A plug-in scheme that limits device memory is shown with it, and obeys --equal-capacity."""
    plugin = f"--plugin {first_touch} --scheme buddy,first-touch --sensitivity none"
    command = f"python -m buddysim run traces/fdtd2048.bin {plugin} --kernels 0:1 --set first_touch.fitting=0.25"
    shown = run((f"{command} --json {tmp_path / 'plain.json'}",), tmp_path, ROOT)
    assert re.search(r"^ +device memory .* 12\.0 MiB", shown, re.MULTILINE)
    host_pages = json.loads((tmp_path / "plain.json").read_text())["first-touch"]["first_touch.host_pages"]
    assert re.search(rf"^ +host pages +- +{host_pages}$", shown, re.MULTILINE)
    results = json.loads(run((f"{command} --equal-capacity --json -",), tmp_path, ROOT))
    buddy, first_touch = (results[name]["footprint.used_device_bytes"] for name in ("buddy", "first-touch"))
    page = 64 * 1024
    assert buddy - page < first_touch <= buddy
    assert first_touch // page >= results["first-touch"]["first_touch.device_pages"] > 0.9 * first_touch / page


def test_results_of_training_are_what_the_page_of_figures_says() -> None:
    page = (HOW_TO / "add-a-figure.md").read_text(encoding="utf-8")
    training = ResultSource().training
    assert "source.training.result(" in page
    result = training.result("alexnet-cifar10", 4, "vdnn-dyn")
    assert training.training_results("alexnet-cifar10", 4, ("vdnn-dyn",), machine="titan-x") == {"vdnn-dyn": result}
    shown = re.findall(r'`result\["([\w.]+)"\]`', page)
    assert len(shown) > 1
    assert all(isinstance(result[name], int | float) for name in shown)
    assert all("name" in row for row in result["per_layer"])

"""How-to pages: every command runs, in the page's order, in a folder that looks like a clone.

A page's commands are split by what they need: those that an extra or a GPU must run are a test of their own, which is
skipped where that is missing. A command that reads a file of such a command needs the same; one that
writes a file for it runs in both tests. Commands with placeholders
in capitals are parsed only (`test_commands`), pages of plug-ins run in `test_extending`, tutorials in their own tests:
commands of a tutorial are not repeated here.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from buddysim.cli import main
from tests.capture.opencl.running import needs_opencl
from tests.docs.shell import ROOT, typed
from tests.docs.test_commands import cut_or_too_wide
from tests.docs.test_extending import PAGES

HOW_TO = ROOT / "docs" / "how-to"
TUTORIALS = {
    "capture": "test_tutorial",
    "first-hour": "test_first_hour",
    "sweep": "test_tutorial_sweep",
    "triton": "test_tutorial_triton",
    "your-script": "test_tutorial_script",
}
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"[A-Z]{3,}(\.\w+)*")
#: Commands that another test runs, on smaller files.
ELSEWHERE = {
    "plot study --run --scale small": "tests/figures/test_study.py",
    "plot fig9 --scale small": "tests/figures/test_study.py",
    "workloads make seismic": "tests/docs/test_first_hour.py",
}
#: Commands that take a fraction of a second.
QUICK = {"machines", "explain", "info", "verify", "traces", "list"}


def has(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def opencl_missing() -> str:
    if not has("pyopencl"):
        return "needs pip install pyopencl"
    needs_opencl()
    return ""


#: What a test can lack, by what its commands are; each says what is missing.
NEEDS: dict[str, Callable[[], str]] = {
    "opencl": opencl_missing,
    "torch": lambda: (
        ""
        if has("torch") and Path("/usr/share/datasets/fashion-mnist").is_dir()
        else "needs torch; apt install dataset-fashion-mnist"
    ),
    "triton": lambda: "" if has("torch", "triton") else "needs buddysim[triton]",
    "gcc": lambda: "" if shutil.which("gcc") else "needs gcc",
    "sweep": lambda: "" if has("distributed", "duckdb", "pandas", "plotly") else "needs buddysim[sweep,report]",
    "gpu": lambda: "" if has("cupy") and shutil.which("nvidia-smi") else "needs buddysim[gpu] and a GPU",
    "": lambda: "",
}


@dataclass(frozen=True)
class Command:
    """A line of a page: a command of buddysim, an `export`, or a script in Python."""

    text: str
    words: tuple[str, ...]
    needs: str

    @property
    def quick(self) -> bool:
        return not self.needs and self.words[0] in QUICK and "out/" not in self.text and "--json" not in self.words


def own_need(words: tuple[str, ...]) -> str:
    """Return the needs of a single command."""
    text = " ".join(words)
    if text.startswith("capture opencl"):
        return "opencl"
    if text.startswith("capture torch"):
        return "torch"
    if text.startswith("capture triton"):
        return "triton"
    if text.startswith("capture memory"):
        return "gcc"
    if text.startswith("machines measure"):
        return "gpu"
    if words[0] in ("sweep", "results", "report", "run_sweep", "pandas") or words[:2] in (
        ("plot", "sweep"),
        ("plot", "study"),
    ):
        return "sweep"
    return ""


def outputs(words: tuple[str, ...]) -> set[str]:
    """Files and folders in `out` that a command names, without suffixes."""
    return {word.partition(".")[0] for word in words if word.startswith("out/")} - {"out/store"}


def overlap(first: set[str], second: set[str]) -> bool:
    """Whether a file is in both, or in a folder of the other."""
    return any(
        f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/") for one in first for other in second
    )


def is_pattern(words: tuple[str, ...]) -> bool:
    return any(PLACEHOLDER.fullmatch(word) and not (ROOT / word).exists() for word in words)


def page_commands(name: str) -> list[Command]:
    """The lines of a page that a test can run."""
    result: list[Command] = []
    for language, block in BLOCK.findall((HOW_TO / f"{name}.md").read_text(encoding="utf-8")):
        if language == "python":
            if "..." not in block:
                kind = next((needed for needed in ("run_sweep", "pandas") if needed in block), "script")
                words = (kind, *re.findall(r"out/[\w./-]+", block))
                result.append(Command(f"cat > script.py <<'END'\n{block}END\npython script.py", words, own_need(words)))
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("export BUDDYSIM"):
                result.append(Command(line, ("export",), "sweep"))
            if not line.startswith("python -m buddysim"):
                continue
            words = tuple(shlex.split(line, comments=True)[3:])
            if is_pattern(words) or " ".join(words).startswith(tuple(ELSEWHERE)):
                continue
            read = [each.needs for each in result if overlap(outputs(each.words), outputs(words))]
            needs = own_need(words) or next(filter(None, read), "")
            result.append(Command(line, words, needs))
    return result


#: Pages whose commands run in `test_extending`; the machine's page has others too.
OF_PLUGINS = {Path(page).stem for kind, page in PAGES.items() if kind != "machine"}
NAMES = sorted({path.stem for path in HOW_TO.glob("*.md")} - OF_PLUGINS)
COMMANDS = {name: page_commands(name) for name in NAMES}
IN_TUTORIALS = {
    line
    for name in TUTORIALS
    for line in (ROOT / "docs" / "tutorials" / f"{name}.md")
    .read_text(encoding="utf-8")
    .replace("\\\n", " ")
    .splitlines()
}


def lines_of(name: str, needs: str) -> list[Command]:
    """The commands of a page that need something and are in no tutorial, with those that write files for them."""
    page = COMMANDS[name]
    selected = [each for each in page if each.needs == needs and each.text not in IN_TUTORIALS]
    for command in reversed(page):
        reads = set().union(*(outputs(each.words) for each in selected))
        if command not in selected and (overlap(outputs(command.words), reads) or command.words[0] == "export"):
            selected.append(command)
    return [command for command in page if command in selected]


CASES = [
    (name, needs) for name in NAMES for needs in NEEDS if {each.needs for each in lines_of(name, needs)} >= {needs}
]


def checkout(folder: Path) -> Path:
    for path in ("traces", "docs", "tests", "plots", "examples", "README.md"):
        (folder / path).symlink_to(ROOT / path)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("name", "needs"), CASES, ids=[f"{name}-{needs or 'nothing'}" for name, needs in CASES])
def test_the_commands_of_a_page(name: str, needs: str, tmp_path: Path) -> None:
    """Replays run without their sensitivity range, which `test_examples_show` has; JSON isn't a screen."""
    if missing := NEEDS[needs]():
        pytest.skip(missing)
    lines = []
    for command in lines_of(name, needs):
        line = command.text
        if command.words[0] == "run" and "--no-sensitivity" not in command.words:
            line += " --no-sensitivity"
        if {"-", "--toml"} & {*command.words}:
            line += " > printed"
        lines.append(line)
    typed(lines, checkout(tmp_path), 300)


def test_the_quick_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    quick = {command.words for command in itertools.chain.from_iterable(COMMANDS.values()) if command.quick}
    assert len(quick) >= 5
    for words in sorted(quick):
        assert main([*words]) == 0, words
        assert not cut_or_too_wide(capsys.readouterr().out), words


def test_every_tutorial_is_run() -> None:
    """Each by its own test; commands that run elsewhere name it."""
    assert {path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md")} == {*TUTORIALS}
    for name, module in TUTORIALS.items():
        assert f'"{name}.md"' in (ROOT / "tests" / "docs" / f"{module}.py").read_text(encoding="utf-8")
    assert all((ROOT / file).exists() for file in ELSEWHERE.values())


def test_what_a_command_needs() -> None:
    """The split above separates commands by their needs."""
    torch = [command.text for command in COMMANDS["capture-pytorch"] if command.needs == "torch"]
    assert len(torch) == 7
    assert not [command for command in COMMANDS["capture-nvidia"] if command.words]
    assert is_pattern(("run", "OUT.bin.incomplete"))
    assert not is_pattern(("sort", "README.md"))

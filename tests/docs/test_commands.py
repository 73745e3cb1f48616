"""The commands in the documents do what they say they do."""

from __future__ import annotations

import os
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from buddysim.cli import REGISTRY, main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "traces" / "README.md", *(ROOT / "docs").glob("*.md")])


def readme_commands():
    """Every command of the README, in its order: in its code blocks and tables."""
    found = re.findall(r"^(python -m .+)$|`(python -m [^`]+)`", README, flags=re.MULTILINE)
    return [block or inline for block, inline in found]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder that looks like a checkout, in which files can be written."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("traces", "tests", "docs"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "out").mkdir()
    return folder


def test_the_readmes_commands_work(checkout, monkeypatch, capfd):
    """In one go, because some read what others wrote."""
    monkeypatch.chdir(checkout)
    ran = 0
    for command in readme_commands():
        _, _, module, *arguments = shlex.split(command)
        if module == "pytest":
            assert (ROOT / arguments[0]).exists(), command
            continue
        if arguments[0] == "capture" and "BUDDYSIM_SANITIZED" in os.environ:
            continue  # the sanitizer wants to be the first library that is preloaded
        if module == "buddysim":
            assert main(arguments) == 0, command
        else:
            assert import_module(module).main(arguments) == 0, command
        ran += 1
    capfd.readouterr()
    assert ran >= 10
    assert (checkout / "out" / "fdtd2048.png").stat().st_size > 10_000


def test_the_readmes_python_works(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout)
    for snippet in re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL):
        exec(compile(snippet, "README.md", "exec"), {})
    cycles, share, milliseconds, against_oracle = capsys.readouterr().out.split()
    assert int(cycles) > 0
    assert 0 < float(share) < 1
    assert float(milliseconds) > 1
    assert 0 < float(against_oracle) <= 1


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_targets_and_links_exist(document):
    text = document.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    names = REGISTRY.names()
    own = "\n".join(line for line in text.splitlines() if "--plugin" not in line)
    for name in re.findall(r"python -m buddysim ([a-z]+)", own):
        assert name in names
    for module in re.findall(r"python -m ((?:benchmarks|plots|tools)[a-z_.]*)", text):
        place = ROOT / module.rstrip(".").replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link:
            assert (document.parent / link).exists(), link

"""The form as a command line, and its answer in this Python: the same as the command's, also without arrays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from buddysim.browser.answer import answer
from buddysim.browser.question import command_line, field_of, train_arguments
from buddysim.cli import main
from buddysim.training.result import CHECKSUM, simulator_checksum
from tools.make_web import ROOT, package_files

QUESTION = {"model": "alexnet", "machine": "titan-x", "batch": "64", "memory": "", "recipe": "", "optimizer": "sgd"}
#: All that the page has of other packages.
PACKAGES = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")


def test_empty_fields_are_not_given() -> None:
    assert train_arguments(QUESTION) == [
        "train", "alexnet", "--machine", "titan-x", "--optimizer", "sgd", "--batch", "64", "--scheme", "all",
    ]  # fmt: skip


def test_a_switch_is_given_when_it_is_on() -> None:
    adapters = {"model": "qwen3-8b", "machine": "rtx-4090", "lora": "16", "link": "pcie3", "fsdp": "2", "qlora": "1"}
    assert train_arguments(adapters) == [
        "train", "qwen3-8b", "--machine", "rtx-4090", "--lora", "16", "--fsdp", "2", "--link", "pcie3", "--qlora",
        "--scheme", "all",
    ]  # fmt: skip
    assert "--qlora" not in train_arguments({**adapters, "qlora": ""})


def test_the_command_can_be_copied() -> None:
    assert command_line(["train", "my model.json", "--batch", "2"]) == (
        "python -m buddysim train 'my model.json' --batch 2"
    )


def test_the_answer_is_the_commands(tmp_path: Path) -> None:
    parts = list(answer(QUESTION))
    assert parts[0]["command"] == f"python -m buddysim {' '.join(train_arguments(QUESTION))}"
    out = tmp_path / "train.json"
    assert main([*train_arguments(QUESTION), "--json", str(out)]) == 0
    assert parts[-1]["json"] == out.read_text(encoding="utf-8")
    results = json.loads(parts[-1]["json"])
    points = {part["scheme"]: part for part in parts if part["part"] == "scheme"}
    assert points.keys() == results.keys()
    assert all(points[name]["time_ms"] == one["time_ms"] for name, one in results.items())
    rows = parts[-1]["csv"].splitlines()
    assert rows[0].startswith("scheme,fits,time_ms")
    assert sorted(row.partition(",")[0] for row in rows[1:]) == sorted(results)


@pytest.mark.parametrize(
    ("changed", "field", "begin"),
    [
        ({"batch": "many"}, "batch", "train: argument --batch"),
        ({"batch": "0"}, "batch", "--batch 0"),
        ({"memory": "8 cats"}, "memory", "--memory-budget"),
        ({"machine": "h1000"}, "machine", "h1000"),
        ({"model": "llama-9"}, "model", "llama-9"),
        ({"optimizer": "adman"}, "optimizer", "optimizer"),
        ({"recipe": "bf17", "model": "gpt2"}, "recipe", "recipe"),
        ({"lora": "x", "model": "gpt2"}, "lora", "lora 'x'"),
        ({"fsdp": "0", "model": "gpt2"}, "fsdp", "fsdp 0"),
        ({"link": "pcie9"}, "link", "link 'pcie9'"),
        ({"qlora": "1", "model": "gpt2"}, "qlora", "qlora: quantised weights"),
    ],
)
def test_what_is_wrong_stands_next_to_its_field(
    changed: dict[str, str], field: str, begin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    question = {**QUESTION, **changed}
    last = list(answer(question))[-1]
    assert (last["part"], last["field"]) == ("error", field)
    assert begin in last["line"]
    if "argument" in begin:
        with pytest.raises(SystemExit):
            main(train_arguments(question))
    else:
        assert main(train_arguments(question)) == 2
    assert capsys.readouterr().err == f"buddysim: error: {last['line']}\n"


def test_an_error_names_its_option() -> None:
    assert field_of("--sequence 0: expected", QUESTION) == "sequence"
    assert field_of("config.json: layers: expected", QUESTION) == "model"


@pytest.fixture(scope="module")
def page_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with what the page has: the files of this package that it copies, and pydantic."""
    folder = tmp_path_factory.mktemp("python")
    for path in package_files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path)
    (folder / "buddysim" / CHECKSUM).write_text(simulator_checksum())
    for name in PACKAGES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.stem == "__init__" else origin
        (folder / source.name).symlink_to(source)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("model", ["resnet18", "gpt2"])
def test_it_runs_with_pydantic_alone(model: str, page_python: Path) -> None:
    program = f"""
import json, sys
from buddysim.browser import entry
assert {model!r} in json.loads(entry.choices_text())["model"]
steps = entry.steps(json.dumps({{"model": {model!r}, "machine": "rtx-4090", "batch": "8"}}), "{{}}")
while (text := steps.next_text()) is not None:
    last = text
assert "numpy" not in sys.modules
print(last)
"""
    command = [sys.executable, "-S", "-P", "-c", program]
    environment = {"PYTHONPATH": str(page_python), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout)
    of_command = json.loads(list(answer({"model": model, "machine": "rtx-4090", "batch": "8"}))[-1]["json"])
    of_page = json.loads(last["json"])
    assert of_page.keys() | last["skipped"].keys() == of_command.keys()
    assert "cdma-zv" in last["skipped"]
    for results in (of_command, of_page):
        for one in results.values():
            del one["provenance"]["numpy"], one["provenance"]["buddysim"]
    assert of_page == {name: of_command[name] for name in of_page}

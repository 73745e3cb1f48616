"""Options that schemes and plug-ins declare reach them from Python and from the command line."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.base.option import Option, values
from buddysim.training import simulate
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.schemes import cdma
from tests.in_process import Done, run_in_process

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "plugins" / "vdnn_large.py"


def train(folder: Path, *arguments: str) -> Done:
    command = ("train", "alexnet", "--batch", "64", *arguments)
    return run_in_process(*command, folder=folder, environment=os.environ)


def test_values_are_those_given_or_the_defaults() -> None:
    declared = {"a": Option(int, "a number", default=3), "b": Option(str, "a text"), "c": Option(float, "a number")}
    assert values(declared, {"a": None, "c": 2, "unrelated": 1}) == {"a": 3, "b": None, "c": 2}
    for wrong in ({"a": 2.0}, {"a": True}, {"b": 1}, {"c": "2"}, {"c": False}):
        with pytest.raises(BuddysimError, match=f"option {next(iter(wrong))}: .*: expected"):
            values(declared, wrong)


def test_a_value_is_checked_whichever_scheme_runs() -> None:
    with pytest.raises(BuddysimError, match=r"option codec_window: 2\.5: expected an integer"):
        simulate("alexnet", 4, "titan-x", "oracle", codec_window=2.5)


def test_options_are_given_in_one_way() -> None:
    with pytest.raises(BuddysimError, match="option synthetic_density: expected among options"):
        simulate("alexnet", 4, "titan-x", "cdma-zv", options=TrainingOptions(), synthetic_density=0.5)


@pytest.mark.parametrize(
    ("option", "flag", "text"),
    [
        (Option(int, "things", "N"), "--two-words", "things"),
        (Option(int, "things", "N", 3), "--two-words", "things (default: 3)"),
        (Option(bool, "count them"), "--two-words", "count them"),
        (Option(bool, "count them", default=True), "--no-two-words", "do not count them"),
    ],
)
def test_flags(option: Option, flag: str, text: str) -> None:
    assert (option.flag("two_words"), option.flag_help()) == (flag, text)


def test_the_document_has_every_option() -> None:
    document = (ROOT / "docs" / "explanation" / "cdma.md").read_text(encoding="utf-8")
    for name, option in cdma.OPTIONS.items():
        value = "" if option.type is bool else f" {option.metavar}"
        assert f"| `{option.flag(name)}{value}` | `{name}` | {option.flag_help()} |" in document


@pytest.mark.slow
def test_the_example_has_its_option_on_the_command_line(tmp_path: Path) -> None:
    offloaded = {}
    for least in ("0", "30", "1e6"):
        arguments = ["--plugin", str(EXAMPLE), "--scheme", "vdnn-large,vdnn-all-p", "--larger-than", least]
        done = train(tmp_path, *arguments, "--json", "-")
        assert done.returncode == 0, done.stderr
        results: Mapping[str, Mapping] = json.loads(done.stdout)
        offloaded[least] = results["vdnn-large"]["offload.bytes"]
        plugins = results["vdnn-large"]["provenance"]["plugins"]
        assert plugins == {"vdnn_large.py": hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()}
    assert offloaded["0"] == results["vdnn-all-p"]["offload.bytes"] > offloaded["30"] > offloaded["1e6"] == 0
    helped = train(tmp_path, "--plugin", str(EXAMPLE), "--help").stdout
    assert "--larger-than MIB" in helped
    assert "other: vdnn-large" in helped
    refused = train(tmp_path, "--plugin", str(EXAMPLE), "--scheme", "oracle", "--larger-than", "3")
    assert "--larger-than: is an option of vdnn-large: expected one of these schemes" in refused.stderr


def test_a_compressor_of_a_plug_in_compresses_copies(tmp_path: Path) -> None:
    arguments = ["--plugin", str(EXAMPLE.with_name("base_delta.py")), "--scheme", "cdma", "--compressor", "base-delta"]
    done = train(tmp_path, *arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["cdma"]
    assert "compression: base-delta, NCHW, entries of 128 B" in result["provenance"]["decisions"][0]
    assert 0 < result["link.bytes"] < result["offload.bytes"] + result["prefetch.bytes"]


def write_scheme(file: Path, declared: str) -> None:
    """Register the example as scheme `mine`, with other options."""
    text = EXAMPLE.read_text().replace("vdnn-large", "mine")
    start = text.index("OPTIONS = ")
    end = text.index("\n\n\ndef plan", start)
    file.write_text(text[:start] + f"OPTIONS = {{{declared}}}" + text[end:])


def test_help_texts_may_have_per_cent_signs(tmp_path: Path) -> None:
    write_scheme(tmp_path / "mine.py", '"mine": Option(float, "10 % more")')
    helped = train(tmp_path, "--plugin", "mine.py", "--help")
    assert "10 % more" in helped.stdout, helped.stderr


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ('"batch": Option(int, "mine")', "scheme mine: option 'batch': train has --batch of its own"),
        ('"mine": 3', "option 'mine': expected an identifier and an Option"),
        ('"mine-too": Option(int, "mine")', "option 'mine-too': expected an identifier and an Option"),
        ('"mine": Option(list, "mine")', "expected one of bool, int, float, str"),
        (
            '"codec_window": Option(str, "another window")',
            "option 'codec_window': another scheme declares it differently",
        ),
    ],
)
def test_wrong_option_declaration_is_an_error(tmp_path: Path, declared: str, problem: str) -> None:
    write_scheme(tmp_path / "mine.py", declared)
    refused = train(tmp_path, "--plugin", "mine.py", "--scheme", "mine")
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert len(refused.stderr.splitlines()) == 1

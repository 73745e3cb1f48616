"""Every kind of capture meets the command's contract, and has the shared options."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from buddysim import capture, cli
from buddysim.cli import SUBCOMMAND
from buddysim.cli.capture import kinds
from buddysim.compress.compressors import size_map_algorithms

NAMES = [kind.NAME for kind in kinds()]


def test_every_package_is_a_kind() -> None:
    packages = {path.parent.name for path in Path(capture.__file__).parent.glob("*/__init__.py")}
    assert {kind.__name__.rpartition(".")[2] for kind in kinds()} == packages
    assert [kind.ORDER for kind in kinds()] == sorted({kind.ORDER for kind in kinds()})
    assert all(hasattr(kind, name) for kind in kinds() for name in SUBCOMMAND)


def test_the_help_lists_them_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["capture", "--help"])
    text = capsys.readouterr().out
    positions = [text.index(f"    {name} ") for name in NAMES]
    assert positions == sorted(positions)


@pytest.mark.parametrize("name", NAMES)
def test_all_captures_have_common_options(name: str) -> None:
    (kind,) = (kind for kind in kinds() if name == kind.NAME)
    parser = argparse.ArgumentParser()
    kind.add_arguments(parser)
    options = {option for action in parser._actions for option in action.option_strings}
    assert {"--output", "--snapshots", "--compressor", "--level", "--source", "--licence"} <= options


@pytest.mark.parametrize("name", NAMES)
def test_a_compressor_that_has_no_sizes_of_entries(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for compressor in ("zlib", "bcp", "fvc"):
        with pytest.raises(SystemExit) as leave:
            cli.main(["capture", name, "--compressor", compressor, "--", "true"])
        assert leave.value.code == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert all(known in message for known in (compressor, *size_map_algorithms()))

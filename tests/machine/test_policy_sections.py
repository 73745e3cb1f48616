"""Policies, those of plug-ins too, own sections of machine files."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, ClassVar

import pytest

from buddysim.base import plugin_modules
from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.machine import Machine, fields
from buddysim.machine.section import Section
from buddysim.replay.dram.write_drain.base import WriteDrainBase

LIMIT = "write_drain.my_drain.limit"
CHOICE = {"dram.write_drain": "my_drain"}


class Mine(Section):
    """The section of a plug-in's policy."""

    limit: Annotated[int, fields.count(1, 100)] = fields.key(3, "a limit", "assumed: a test")


class WriteDrain(WriteDrainBase):
    SECTION: ClassVar = Mine
    configured: int = 0

    @staticmethod
    def misfits(machine: Machine) -> Iterator[str]:
        if machine.section_of(Mine).limit > machine.dram.write_high_watermark:
            yield f"{LIMIT}: expected at most dram.write_high_watermark"

    def configure(self, machine: Machine) -> None:
        self.configured = machine.section_of(Mine).limit


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the policy above as a plug-in's for one test."""
    module = ModuleType(f"{plugin_modules.PACKAGE}.my_drain")
    vars(module).update(WriteDrain=WriteDrain)
    monkeypatch.setitem(plugin_modules.loaded, Path("my_drain.py"), module)


def test_the_keys_of_a_run_are_those_of_the_chosen_policy() -> None:
    machine = Machine.load("v100").with_overrides({LIMIT: 7, **CHOICE})
    assert machine.text(LIMIT) == "7"
    assert machine.policies()["write drain"].configured == 7
    assert Machine.load("v100").with_overrides(CHOICE).policies()["write drain"].configured == 3


def test_only_the_chosen_policy_s_keys_count_in_the_checksum() -> None:
    machine = Machine.load("v100")
    with_it = machine.with_overrides(CHOICE)
    assert machine.with_overrides({LIMIT: 7}).checksum == machine.checksum
    assert with_it.with_overrides({LIMIT: 3}).checksum == with_it.checksum != machine.checksum
    changed = with_it.with_overrides({LIMIT: 7})
    assert changed.checksum == machine.checksum_with({LIMIT: "7", **CHOICE}) != with_it.checksum
    assert pickle.loads(pickle.dumps(changed)).checksum == changed.checksum


def test_a_loaded_policy_changes_no_checksum() -> None:
    with_it = {name: Machine.load(name).checksum for name in ("v100", "p100-nvlink2")}
    with pytest.MonkeyPatch.context() as unloaded:
        unloaded.delitem(plugin_modules.loaded, Path("my_drain.py"))
        assert LIMIT not in Machine.load("v100").dotted_keys()
        assert {name: Machine.load(name).checksum for name in with_it} == with_it


def test_a_section_is_read_from_a_file_and_written_to_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    table = '[dram]\nwrite_drain = "my_drain"\n[write_drain.my_drain]\nlimit = 7\n'
    path.write_text(f'base = "v100"\n{table}[sources]\n"write_drain" = "an estimate"\n')
    machine = Machine.load(path)
    assert (machine.text(LIMIT), machine.source(LIMIT)) == ("7", "an estimate")
    path.write_text(machine.to_toml())
    assert Machine.load(path) == machine
    assert Machine.load("v100").source(LIMIT) == "default: assumed: a test"


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("[write_drain.my_drain]\nlimit = 0", f"{LIMIT}: 0 is out of range"),
        ("[write_drain.my_drain]\nlimt = 4", rf"write_drain\.my_drain\.limt: unknown key \(nearest: {LIMIT}\)"),
        ("[write_drain.exclusive]\nlimit = 4", f"write_drain: a section, not a key: expected one of {LIMIT}"),
        ("write_drain = 4", f"write_drain: a section, not a key: expected one of {LIMIT}"),
        (
            '[dram]\nwrite_high_watermark = 20\nwrite_drain = "my_drain"\n[write_drain.my_drain]\nlimit = 21',
            f"{LIMIT}: exp",
        ),
    ],
)
def test_its_errors_read_as_those_of_any_section(tmp_path: Path, table: str, problem: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "v100"\n{table}\n')
    with pytest.raises(BuddysimError, match=problem):
        Machine.load(path)


def test_explain_and_list_know_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", LIMIT]) == 0
    assert "a limit" in capsys.readouterr().out
    assert main(["list", "write-drain", "my_drain"]) == 0
    assert LIMIT in capsys.readouterr().out
    assert main(["machines", "v100", "--set", f"{LIMIT}=9"]) == 0
    assert LIMIT in capsys.readouterr().out

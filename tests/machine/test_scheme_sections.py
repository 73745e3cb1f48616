"""Replay schemes, those of plug-ins too, own sections of machine files."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, ClassVar

import pytest
from pydantic import Field

from buddysim.base import plugin_modules
from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine, fields
from buddysim.machine.scheme_sections import plugin_sections, scheme_sections
from buddysim.machine.section import Duration, Section
from buddysim.machine.units import parse_time
from buddysim.replay.schemes.base import SchemeBase


class Mine(Section):
    """The section of a plug-in's scheme."""

    limit: Annotated[int, fields.count(1, 100)] = Field(default=3, description="a limit")
    delay: Duration = Field(default=parse_time("1 us"), description="a delay")


class Scheme(SchemeBase):
    SECTIONS: ClassVar = {"my_scheme": Mine}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Register the scheme above as a plug-in's for one test."""

    def register(module_name: str) -> None:
        module = ModuleType(f"{plugin_modules.PACKAGE}.{module_name}")
        vars(module).update(Scheme=Scheme)
        monkeypatch.setitem(plugin_modules.loaded, Path(f"{module_name}.py"), module)

    return register


@pytest.mark.parametrize("name", scheme_sections())
def test_every_section_has_defaults_and_describes_its_keys(name: str) -> None:
    section = scheme_sections()[name]
    machine = Machine.load("p100-nvlink2")
    assert isinstance(getattr(machine, name), section)
    assert name not in plugin_sections()
    for key, field in section.model_fields.items():
        assert field.description, key
        assert not field.is_required(), f"{name}.{key} has no default"
        assert f"{name}.{key}" in machine.dotted_keys()


def test_a_section_is_available_once_its_plug_in_is_loaded(registered: Callable[[str], None]) -> None:
    before = Machine.load("v100")
    assert not hasattr(before, "my_scheme")
    with pytest.raises(BuddysimError, match=r"my_scheme\.limit: unknown key"):
        before.with_overrides({"my_scheme.limit": 4})
    registered("my_scheme")
    after = Machine.load("v100")
    for machine in (before, after):
        assert machine.my_scheme.limit == 3
        assert machine.with_overrides({"my_scheme.limit": "4"}).my_scheme.limit == 4
        assert machine.text("my_scheme.delay") == "1 us"
    assert before == after


def test_it_counts_in_the_checksum_where_it_differs_from_its_defaults(registered: Callable[[str], None]) -> None:
    checksum = Machine.load("v100").checksum
    registered("my_scheme")
    machine = Machine.load("v100")
    assert machine.checksum == checksum
    assert machine.with_overrides({"my_scheme.delay": "1000 ns"}).checksum == checksum
    changed = machine.with_overrides({"my_scheme.limit": 4})
    assert changed.checksum != checksum
    assert pickle.loads(pickle.dumps(changed)).checksum == changed.checksum
    assert pickle.loads(pickle.dumps(changed)) == changed != machine


def test_a_plug_in_that_reuses_the_section_of_another_scheme_changes_no_checksum(
    registered: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    checksum = Machine.load("v100").checksum
    monkeypatch.setattr(Scheme, "SECTIONS", {"my_scheme": scheme_sections()["um"]})
    registered("my_scheme")
    machine = Machine.load("v100")
    assert machine.my_scheme == machine.um
    assert machine.checksum == checksum
    assert machine.with_overrides({"um.page_size": "8 KiB"}).my_scheme.page_size != 8192


def test_it_is_read_from_a_file_and_written_to_one(registered: Callable[[str], None], tmp_path: Path) -> None:
    registered("my_scheme")
    path = tmp_path / "mine.toml"
    path.write_text('base = "v100"\n[my_scheme]\nlimit = 7\n[sources]\n"my_scheme.limit" = "an estimate"\n')
    machine = Machine.load(path)
    assert (machine.my_scheme.limit, machine.source("my_scheme.limit")) == (7, "an estimate")
    path.write_text(machine.to_toml())
    assert Machine.load(path) == machine
    assert Machine.load(path).checksum == machine.checksum


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("[my_scheme]\nlimit = 0", "my_scheme.limit: 0 is out of range"),
        ("[my_scheme]\nlimt = 4", r"my_scheme.limt: unknown key \(nearest: my_scheme.limit\)"),
        ("my_scheme = 4", "my_scheme: 4 is not a section of keys"),
        ("[my_schem]\nlimit = 4", r"my_schem: unknown key \(nearest: my_scheme\)"),
        ("[l2]\nways = 0\n[my_scheme]\nlimit = 0", "l2.ways: 0 is out of range.*; my_scheme.limit: 0 is out of range"),
    ],
)
def test_its_errors_read_as_those_of_any_section(
    registered: Callable[[str], None], tmp_path: Path, table: str, problem: str
) -> None:
    registered("my_scheme")
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "v100"\n{table}\n')
    with pytest.raises(BuddysimError, match=problem):
        Machine.load(path)


def test_a_section_cannot_take_the_name_of_one_that_machines_have(
    registered: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scheme, "SECTIONS", {"link": Mine})
    registered("my_scheme")
    with pytest.raises(BuddysimError, match=r"replay scheme: SECTIONS: every machine file has a section \[link\]"):
        Machine.load("v100")


def test_a_section_cannot_take_the_name_of_another_scheme_s(
    registered: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scheme, "SECTIONS", {"buddy": Mine})
    registered("my_scheme")
    with pytest.raises(BuddysimError, match=r"my-scheme: SECTIONS: another scheme has a section \[buddy\]"):
        Machine.load("v100")


def test_a_plug_in_may_use_the_section_of_another_scheme(
    registered: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    checksum = Machine.load("v100").checksum
    monkeypatch.setattr(Scheme, "SECTIONS", {"buddy": scheme_sections()["buddy"]})
    registered("my_scheme")
    assert Machine.load("v100").checksum == checksum
    assert "buddy" not in plugin_sections()

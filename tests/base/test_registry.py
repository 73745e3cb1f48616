"""Registries list every module of a folder that meets the contract, in the order that the modules define."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from buddysim.base import plugin_modules, plugins
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import HOMES, registry
from buddysim.base.registry import Registry, modules_with


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[object]:
    folder = tmp_path / "things_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "later.py").write_text("COLOUR = 'red'\n")
    (folder / "earlier_one.py").write_text("COLOUR = 'blue'\nORDER = 20\n")
    (folder / "first.py").write_text("COLOUR = 'green'\nORDER = 10\n")
    (folder / "no_thing.py").write_text("SHAPE = 'round'\n")
    (folder / "_hidden.py").write_text("COLOUR = 'black'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Registry("thing", folder.name, ("COLOUR",), modules_with("COLOUR"))
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_modules_that_meet_the_contract_in_their_order(things):
    assert things.names() == ("first", "earlier-one", "later")
    assert [module.COLOUR for _, module in things.items()] == ["green", "blue", "red"]
    assert "later" in things
    assert "no-thing" not in things


def test_an_unknown_name_gets_the_nearest(things):
    assert things.find("later").COLOUR == "red"
    with pytest.raises(BuddysimError, match=r"thing 'latr': unknown, expected one of .* \(nearest: later\)"):
        things.find("latr")


def test_known_names_are_found_without_the_environment(
    things: Registry[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models of training look up thousands; a name that is unknown so far may be that of a plug-in."""
    looks = []
    modules = plugins.modules
    monkeypatch.setattr(plugins, "modules", lambda: looks.append(1) or modules())
    assert things.find("first") is things.find("first")
    assert "later" in things
    assert len(looks) == 1
    plugin = tmp_path / "of_a_test.py"
    plugin.write_text(
        "COLOUR = 'grey'\nOPTIONS = {}\ndef compress(data): ...\ncompressed_bits = decompress = compress\n"
    )
    monkeypatch.setenv(plugins.VARIABLE, str(plugin))
    assert things.find("of-a-test").COLOUR == "grey"
    assert things.find("first").COLOUR == "green"
    del sys.modules[plugin_modules.loaded.pop(plugin).__name__]
    monkeypatch.delenv(plugins.VARIABLE)
    assert "of-a-test" not in things


@pytest.mark.parametrize("kind", HOMES)
def test_every_kind_has_its_registry_and_something_in_it(kind):
    kind_registry = registry(kind)
    assert kind_registry.kind == kind
    assert kind_registry.names()
    assert all(kind_registry.find(name) is thing for name, thing in kind_registry.items())


@pytest.mark.parametrize("kind", HOMES)
def test_everything_says_in_a_line_what_it_is(kind):
    from buddysim.cli.list_ import summary

    lines = {name: summary(name, thing) for name, thing in registry(kind).items()}
    assert not [name for name, line in lines.items() if not 10 < len(line) < 200]

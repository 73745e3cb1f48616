"""Registries: the members of one kind (compressors, schemes, figures, ...) by name.

A kind has a folder in this package. Every module of the folder that meets the kind's contract is registered, and so is
every plug-in that does (`buddysim.base.plugins`). Nothing else lists them: help, arguments, orders and documents ask
the registry.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Generic, TypeVar

from buddysim.base import plugins
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.plugin_modules import source_of

T = TypeVar("T")

#: A module's ``ORDER`` is its position in lists; modules without one come last, by name.
LAST = 1_000_000
_MAX_NAMED = 40  # in a message


class Registry(Generic[T]):
    """The members of one kind, by name.

    Parameters
    ----------
    kind : name of the kind in the singular, for messages: ``"compressor"``
    package : dotted name of the folder whose modules are registered
    contract : names that a module of the kind defines, for messages: ``("OPTIONS", "compress")``
    adopt : returns the members that a module defines, by name; none for a module of another kind
    """

    def __init__(
        self, kind: str, package: str, contract: tuple[str, ...], adopt: Callable[[ModuleType], Mapping[str, T]]
    ) -> None:
        self.kind, self.package, self.contract, self.adopt = kind, package, contract, adopt
        self._own: dict[str, tuple[int, T]] | None = None
        self._by_name: dict[str, T] = {}
        self._plugins_seen: tuple[ModuleType, ...] | None = None

    def names(self) -> tuple[str, ...]:
        """Every name, in the order of the modules' ``ORDER``, then by name."""
        return tuple(self._all())

    def items(self) -> Iterator[tuple[str, T]]:
        """Names and members, in the order of `names`."""
        return iter(self._all().items())

    def __contains__(self, name: object) -> bool:
        return name in self._with(name)

    def find(self, name: str) -> T:
        """Return the member of a name.

        Raises
        ------
        BuddysimError
            where the name is unknown; the message has the nearest one, and all where they are not too many
        """
        things = self._with(name)
        if name not in things:
            expected = f"one of {', '.join(things)}"
            if len(things) > _MAX_NAMED:
                expected = f"one of the {len(things)} that 'buddysim list {self.kind.replace(' ', '-')}' names"
            raise BuddysimError(f"{self.kind} {shortened(name)}: unknown, expected {expected}{hint(name, things)}")
        return things[name]

    def _with(self, name: object) -> dict[str, T]:
        """Every member; for a known name, which no plug-in may take, without what reads the environment.

        Models of training look up some thousand names.
        """
        is_known = name in self._by_name and self._plugins_seen == plugins.imported()
        return self._by_name if is_known else self._all()

    def _all(self) -> dict[str, T]:
        modules = plugins.modules()
        if self._own is None:
            self._own = {}
            for module in self._folder():
                self._add(self._own, module)
        if self._plugins_seen != modules:
            ranked = dict(self._own)
            for module in modules:
                self._add(ranked, module)
            self._by_name = {name: ranked[name][1] for name in sorted(ranked, key=lambda name: (ranked[name][0], name))}
            self._plugins_seen = modules
        return self._by_name

    def _folder(self) -> Iterator[ModuleType]:
        package = import_module(self.package)
        for entry in pkgutil.iter_modules(package.__path__):
            if not entry.name.startswith("_"):
                yield import_module(f"{self.package}.{entry.name}")

    def _add(self, known: dict[str, tuple[int, T]], module: ModuleType) -> None:
        for position, (name, thing) in enumerate(self.adopt(module).items()):
            if name in known:
                source = source_of(module)
                raise BuddysimError(f"{source}: {self.kind} {name!r}: there is one of that name already")
            known[name] = (module.ORDER + position if hasattr(module, "ORDER") else LAST, thing)


def name_of(module: ModuleType) -> str:
    """Return the name of a member that is called as its module: with ``-`` for ``_``."""
    return module.__name__.rpartition(".")[2].replace("_", "-")


def modules_with(*names: str) -> Callable[[ModuleType], Mapping[str, ModuleType]]:
    """Adopts modules that have all these names, each by its own name (`name_of`)."""

    def adopt(module: ModuleType) -> Mapping[str, ModuleType]:
        return {name_of(module): module} if all(hasattr(module, name) for name in names) else {}

    return adopt

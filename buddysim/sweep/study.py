"""A study: what varies, as axes whose product is the points.

An axis is a list of alternatives, each some settings: one name with several values (a grid), several names that go
together (a zip), or whole sets of settings (a list). Exclusions take points out of the product.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from pydantic import Field

from buddysim.base import plugins
from buddysim.base.dotted import flat, unknown_key
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.schema import Schema, checked
from buddysim.sweep.axis import Value
from buddysim.sweep.engine_protocol import SweepEngine
from buddysim.sweep.engines import NAMES, find
from buddysim.sweep.point import KEY_DIGITS, SweepPoint

#: A larger study asks first.
MANY = 1_000_000

Alternative = dict[str, Value]


@dataclass
class Study:
    """A study: axes, exclusions and a baseline.

    Attributes
    ----------
    engine : name of the engine
    title : title of figures and of progress
    axes : alternatives of each axis
    exclude : values of some names for each exclusion; a point that has one value for every name is left out
    baseline : settings of the baseline of each point; None: no baseline is simulated
    """

    engine: str
    title: str = "sweep"
    axes: list[list[Alternative]] = field(default_factory=list)
    exclude: list[dict[str, list[Value]]] = field(default_factory=list)
    baseline: Alternative | None = None

    @property
    def sweep_engine(self) -> SweepEngine:
        """Its engine."""
        return find(self.engine)

    @property
    def product(self) -> int:
        """Points before exclusions, without baselines."""
        return math.prod(len(axis) for axis in self.axes)

    @property
    def varied(self) -> list[str]:
        """The names that have more than one value, in their order."""
        values: dict[str, set[Value]] = {}
        for axis in self.axes:
            for alternative in axis:
                for name in dict.fromkeys(key for each in axis for key in each):
                    values.setdefault(name, set()).add(alternative.get(name))
        return [name for name, of_name in values.items() if len(of_name) > 1]

    def points(self) -> Iterator[SweepPoint]:
        """The points, each once, in the order of the axes; without baselines."""
        return map(self.point_at, self.indices())

    def indices(self) -> Iterator[int]:
        """The indices of the points in the product of the axes: those that nothing excludes."""
        for index in range(self.product):
            if not self.exclude or not any(self._matches(self._settings_at(index), each) for each in self.exclude):
                yield index

    def point_at(self, index: int) -> SweepPoint:
        """The point at an index in the product of the axes, the last axis fastest."""
        return SweepPoint(self.engine, self._settings_at(index))

    def _settings_at(self, index: int) -> Alternative:
        """One alternative of each axis; later axes win."""
        alternatives = []
        for axis in reversed(self.axes):
            index, digit = divmod(index, len(axis))
            alternatives.append(axis[digit])
        settings: Alternative = {}
        for alternative in reversed(alternatives):
            settings.update(alternative)
        return settings

    def baseline_of(self, point: SweepPoint) -> SweepPoint | None:
        """Return the point whose time a point's time is normalized to; None if there is none."""
        scheme = self.sweep_engine.BASELINE
        if scheme is None:
            return None
        return SweepPoint(self.engine, {**point.settings, "scheme": scheme, **(self.baseline or {})})

    def check(self) -> None:
        """Refuse unknown names and wrong values; each is checked once."""
        engine, known = self.sweep_engine, self.sweep_engine.axes()
        names = {name for axis in self.axes for alternative in axis for name in alternative} | {*(self.baseline or {})}
        if engine.SUBJECT not in names:
            raise BuddysimError(f"nothing to simulate: expected {engine.SUBJECT} to have a value")
        for axis in self.axes:
            if not axis:
                raise BuddysimError("an axis without values: expected at least one")
        first: Alternative = {}
        for axis in self.axes:
            first.update(axis[0])
        machines = self._values("machine") or [None]
        for axis in [*self.axes, [self.baseline or {}]]:
            for alternative in axis:
                settings = {**first, **alternative}
                engine.checked(settings, [name for name in alternative if name in known])
                for name, value in alternative.items():
                    if name not in known:
                        for machine in machines:
                            engine.machine_value({**settings, "machine": machine}, name, value)
        for exclusion in self.exclude:
            for name in exclusion:
                if name not in names:
                    raise BuddysimError(f"exclude: {name}: the study gives it no value: expected one of "
                                        f"{', '.join(sorted(names))}{hint(name, names)}")  # fmt: skip

    def _values(self, name: str) -> list[Value]:
        return [each[name] for axis in self.axes for each in axis if name in each]

    def _canonical(self, settings: Mapping[str, Value], name: str, value: Value) -> Any:
        return value if name in self.sweep_engine.axes() else self.sweep_engine.machine_value(settings, name, value)

    def _matches(self, settings: Mapping[str, Value], exclusion: Mapping[str, list[Any]]) -> bool:
        for name, values in exclusion.items():
            if name not in settings:
                return False
            here = self._canonical(settings, name, settings[name])
            if here not in [self._canonical(settings, name, value) for value in values]:
                return False
        return True


class PointKeys:
    """Keys of many points: `SweepPoint.key`, each part of their identities computed once.

    A tenth of a second for 10,000 points; nothing may change meanwhile.
    """

    def __init__(self) -> None:
        self._layouts: dict[Any, tuple[Pick, Pick, Pick]] = {}
        self._around: dict[Any, tuple[str, str]] = {}
        self._machines: dict[Any, str] = {}

    def key_of(self, point: SweepPoint) -> str:
        """The key of a point."""
        settings = point.settings
        layout = (point.engine, *settings)
        picks = self._layouts.get(layout)
        if picks is None:
            picks = self._layouts[layout] = self._picks(point)
        of_machine, others, read = picks
        values = tuple(settings.values())
        around_key = (layout, others(values), read(values))
        around = self._around.get(around_key)
        if around is None:
            identity = sorted(point.identity.items())
            before = "\n".join(f"{key}={value}" for key, value in identity if key < "machine")
            after = "\n".join(f"{key}={value}" for key, value in identity if key > "machine")
            around = self._around[around_key] = (f"{before}\nmachine=", f"\n{after}")
        machine_key = (layout, of_machine(values))
        machine = self._machines.get(machine_key)
        if machine is None:
            machine = self._machines[machine_key] = point.sweep_engine.machine_identity(settings)
        text = f"{around[0]}{machine}{around[1]}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]

    @staticmethod
    def _picks(point: SweepPoint) -> tuple[Pick, Pick, Pick]:
        """Return functions that select a point's machine values, its other values, and values that are both."""
        indices = {name: index for index, name in enumerate(point.settings)}
        keys_read = point.sweep_engine.KEYS_READ
        return (
            _pick([index for name, index in indices.items() if "." in name or name == "machine"]),
            _pick([index for name, index in indices.items() if "." not in name]),
            _pick([index for name, index in indices.items() if name in keys_read]),
        )


Pick = Callable[[tuple[Value, ...]], Any]


def _pick(indices: list[int]) -> Pick:
    return itemgetter(*indices) if indices else lambda values: ()


class StudyTables(Schema):
    """The tables of a study file; the values in them are checked by the engine's axes."""

    engine: str | None = None
    title: str | None = None
    set: dict[str, Any] | None = None
    grid: dict[str, Any] | None = None
    zip: list[dict[str, Any]] | None = None
    listed: list[dict[str, Any]] | None = Field(None, alias="list")
    exclude: list[dict[str, Any]] | None = None
    baseline: dict[str, Any] | None = None
    plugins: list[str] | None = None


def _with_lists(content: Mapping[str, Any]) -> dict[str, Any]:
    """A single table where several may be is a list of one."""
    several = ("zip", "list", "exclude")
    return {k: [dict(v)] if k in several and isinstance(v, Mapping) else v for k, v in content.items()}


class StudyReader:
    """Makes a study of nested tables (docs/reference/study-files.md).

    Parameters
    ----------
    where : what errors begin with
    resolve : the path of a file that a value names
    """

    TABLES = tuple(field.alias or name for name, field in StudyTables.model_fields.items())

    def __init__(self, where: str, resolve: Any = None) -> None:
        self.where, self._resolve = where, resolve

    def read(self, content: Mapping[str, Any], changed: Mapping[str, Any] | None = None) -> Study:
        """Return the study.

        Parameters
        ----------
        changed : values of names from elsewhere, an axis each; relative paths among them are those of the process

        Raises
        ------
        BuddysimError
            an unknown table or name, with the nearest; a wrong value; lists of a zip that differ in length
        """
        content = checked(StudyTables, _with_lists(content), self.where).model_dump(by_alias=True, exclude_unset=True)
        for file in content.get("plugins", []):
            plugins.load_plugin(self._path(file))
        study = Study(self._engine({**content, "changed": changed or {}}), str(content.get("title") or self.where))
        fixed = {name: self._value(study, name, value) for name, value in self._flat(content, "set").items()}
        study.axes.append([fixed])
        for name, values in self._flat(content, "grid").items():
            study.axes.append([{name: self._value(study, name, value)} for value in self._list(name, values)])
        for table in self._tables(content, "zip"):
            study.axes.append(self._zipped(study, table))
        listed = [
            {name: self._value(study, name, value) for name, value in table.items()}
            for table in self._tables(content, "list")
        ]
        if listed:
            study.axes.append(listed)
        here = StudyReader(self.where)
        for name, values in (changed or {}).items():
            study.axes.append([{name: here._value(study, name, value)} for value in here._list(name, values)])
        for table in self._tables(content, "exclude"):
            study.exclude.append(
                {
                    name: [
                        self._value(study, name, value) for value in (values if isinstance(values, list) else [values])
                    ]
                    for name, values in table.items()
                }
            )
        if "baseline" in content:
            study.baseline = {
                name: self._value(study, name, value) for name, value in self._flat(content, "baseline").items()
            }
        try:
            study.check()
        except BuddysimError as error:
            raise BuddysimError(f"{self.where}: {error}") from None
        return study

    def _engine(self, content: Mapping[str, Any]) -> str:
        if "engine" in content:
            return find(str(content["engine"])).NAME
        text = [dict(flat({k: v for k, v in content.items() if isinstance(v, Mapping)})), *content.get("list", [])]
        names = {key.rpartition(".")[2] for table in text for key in table}
        for name in NAMES:
            if find(name).SUBJECT in names:
                return name
        subjects = " or ".join(find(name).SUBJECT for name in NAMES)
        raise BuddysimError(f"{self.where}: nothing to simulate: expected a value of {subjects}")

    def _flat(self, content: Mapping[str, Any], table: str) -> dict[str, Any]:
        return dict(flat(content.get(table, {})))

    def _tables(self, content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        return [dict(flat(table)) for table in content.get(name, [])]

    def _list(self, name: str, values: Any) -> list[Any]:
        listed = values if isinstance(values, list | tuple) else [values]
        if not listed:
            raise BuddysimError(f"{self.where}: {name}: an empty list: expected at least one value")
        return list(listed)

    def _zipped(self, study: Study, table: Mapping[str, Any]) -> list[Alternative]:
        lists = {name: self._list(name, values) for name, values in table.items()}
        lengths = {len(values) for values in lists.values()}
        if len(lengths) > 1:
            counts = ", ".join(f"{name} has {len(values)}" for name, values in lists.items())
            raise BuddysimError(f"{self.where}: zip: expected as many values of each name: {counts}")
        rows = zip(*lists.values(), strict=True)
        return [{name: self._value(study, name, value) for name, value in zip(lists, row, strict=True)} for row in rows]

    def _value(self, study: Study, name: str, raw: Any) -> Value:
        axes = study.sweep_engine.axes()
        if name in axes:
            axis = axes[name]
            if self._resolve is not None and isinstance(raw, str):
                raw = self._resolve(axis, name, raw)
            try:
                return axis.value(name, raw)
            except BuddysimError as error:
                raise BuddysimError(f"{self.where}: {error}") from None
        if "." not in name:
            known = [*axes]
            raise BuddysimError(
                f"{self.where}: {unknown_key(name, known)}: expected a key of the machine, such as l2.size, or one of "
                f"{', '.join(known)}"
            )
        if not isinstance(raw, str | int | float | bool):
            raise BuddysimError(f"{self.where}: {name}: {shortened(raw)}: expected a text, a number or a switch")
        return raw

    def _path(self, file: Any) -> str:
        return str(file) if self._resolve is None else str(self._resolve(None, "plugins", str(file)))

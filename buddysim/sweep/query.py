"""Tables of a store's rows: DuckDB over Parquet, with units in conditions.

``results`` has a row for each result of the current model versions, ``every_result`` also those of older versions.
Numbers are in base units: bytes, picoseconds, hertz, bytes per second (docs/how-to/query-results.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.parsers.database import Database
from buddysim.machine.units import BANDWIDTH_UNITS, FLOPS_UNITS, FREQUENCY_UNITS, SIZE_UNITS, TIME_UNITS
from buddysim.sweep.engines import NAMES, find
from buddysim.sweep.index import CHANGED, SIZE, Index, installed
from buddysim.sweep.store import Store

#: Columns about files and processes, which come last.
_ABOUT = ("settings_hash", "baseline")
#: What only the index and the store read: the bytes of a result, and the file that it was read from.
_INTERNAL = ("record", SIZE, CHANGED)
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*'|\"[^\"]*\")|(?P<op><=|>=|!=|<>|==|=|<|>)|(?P<mark>[(),])"
    r"|(?P<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]*[A-Za-z_]{3,}[\w-]*-))\s*"
    r"(?P<unit>(?!(?:and|or)\b)[A-Za-z]+(?:/[a-z_]+)?(?=[\s),]|$))?|(?P<word>[^\s()<>=!,'\"]+))"
)
#: Picoseconds in the unit of a column of times, by how its name ends; the others are in picoseconds.
_COLUMN_TIMES = {"_ms": 10**9, "seconds": 10**12}
_WORDS = ("and", "or", "not", "in", "is", "null")


class ResultTable:
    """The rows of a store, for queries.

    Parameters
    ----------
    store : the store; damaged files go to its notes
    index : its index, up to date; None: that is made

    Raises
    ------
    BuddysimError
        where DuckDB is missing, or there are no results
    """

    def __init__(self, store: Store, index: Index | None = None) -> None:
        if not installed():
            raise BuddysimError("tables of results need DuckDB and pyarrow: pip install 'buddysim[sweep]'")
        files = (index or Index(store).refresh()).files()
        if not files:
            raise BuddysimError(f"{store.folder}: no results: expected a store that a sweep wrote")
        self._database = Database(f"{store.folder}: its results are no table")
        quoted = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        self._database.rows(f"CREATE VIEW read AS SELECT * FROM read_parquet([{quoted}], union_by_name=true)")
        existing = [row[0] for row in self._database.rows("DESCRIBE read")]
        retained = [column for column in existing if column not in _INTERNAL]
        columns = ", ".join(f"r.{_quoted(column)}" for column in retained if column not in _ABOUT)
        about = ", ".join(f"r.{_quoted(column)}" for column in retained if column in _ABOUT)
        against, join = _against(existing)
        current = " OR ".join(f"(engine = '{name}' AND model_version = {find(name).model_version()})" for name in NAMES)
        self._database.rows(f"CREATE VIEW every_result AS SELECT {columns}{against}, {about} FROM read r {join}")
        self._database.rows(f"CREATE VIEW results AS SELECT * FROM every_result WHERE {current}")
        self.columns = [row[0] for row in self._database.rows("DESCRIBE results")]

    def sql(self, query: str) -> Any:
        """The Arrow table of a query; a BuddysimError with DuckDB's own words where it is wrong."""
        return self._database.table(query, "--sql")

    def select(self, where: str | None = None, columns: Sequence[str] | None = None, all_versions: bool = False) -> Any:
        """The Arrow table of some rows and columns, in a fixed order.

        Parameters
        ----------
        where : a condition with units, such as ``link.bandwidth > 100 GB/s and scheme = buddy``
        columns : names; None: all
        all_versions : rows of older model versions too
        """
        for column in columns or ():
            self._check(column, "--columns")
        selected = ", ".join(_quoted(column) for column in columns) if columns else "*"
        condition = f" WHERE {self.condition(where)}" if where else ""
        source = "every_result" if all_versions else "results"
        return self.sql(f"SELECT {selected} FROM {source}{condition} ORDER BY ALL" if columns else
                        f"SELECT {selected} FROM {source}{condition} ORDER BY engine, key")  # fmt: skip

    def condition(self, where: str) -> str:
        """A condition as SQL.

        Raises
        ------
        BuddysimError
            an unknown column, with the nearest; a text that isn't a condition
        """
        parts, at, column, expects_value = [], 0, "", False
        while where[at:].strip():
            match = _TOKEN.match(where, at)
            if match is None or match.end() == at:
                raise BuddysimError(f"--where: {shortened(where[at:])}: expected a column, a comparison or a value")
            at = match.end()
            if match["op"]:
                parts.append("=" if match["op"] == "==" else match["op"])
                expects_value = True
            elif match["mark"]:
                parts.append(match["mark"])
            elif match["word"] and match["word"].lower() in _WORDS:
                parts.append(match["word"].upper())
                expects_value = match["word"].lower() == "in" or (expects_value and match["word"].lower() == "not")
            elif expects_value:
                parts.append(_value(match, column))
                expects_value = where[at:].lstrip()[:1] == ","
            else:
                column = match["word"] or (match["text"] or "").strip("'\"")
                if not column:
                    raise BuddysimError(f"--where: {shortened(match[0].strip())}: expected the name of a column")
                self._check(column, "--where")
                parts.append(_quoted(column))
        return " ".join(parts)

    def _check(self, column: str, where: str) -> None:
        if column not in self.columns:
            raise BuddysimError(f"{where}: {shortened(column)[1:-1]}: unknown column{hint(column, self.columns)}")


def _against(columns: Sequence[str]) -> tuple[str, str]:
    """Columns with times against the baseline's, and the join that they need."""
    made = [find(name) for name in NAMES]
    engines = [engine for engine in made if engine.AGAINST and engine.TIME in columns and "baseline" in columns]
    if not engines:
        return "", ""
    # A damaged result may have a text or a truth for its time.
    times_of = {engine: [f"try_cast({side}.{_quoted(engine.TIME)} AS DOUBLE)" for side in "rb"] for engine in engines}
    shown = "".join(f", {r} / nullif({b}, 0) AS {_quoted(str(e.AGAINST))}" for e, (r, b) in times_of.items())
    times = ", ".join(_quoted(engine.TIME) for engine in engines)
    return shown, f"LEFT JOIN (SELECT DISTINCT ON (key) key, {times} FROM read) b ON r.baseline = b.key"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _value(match: re.Match[str], column: str) -> str:
    if match["number"]:
        return _number(match["number"], match["unit"], column)
    text = match["text"][1:-1].replace("''", "'") if match["text"] else match["word"]
    if match["word"] and match["word"].lower() in ("true", "false"):
        return match["word"].lower()
    return "'" + text.replace("'", "''") + "'"


def _number(number: str, unit: str | None, column: str) -> str:
    if unit is None:
        return number
    factor = _factor(unit)
    if factor is None:
        units = [*SIZE_UNITS, *TIME_UNITS, *FREQUENCY_UNITS, *FLOPS_UNITS, *BANDWIDTH_UNITS]
        raise BuddysimError(f"--where: {column}: {number} {unit}: unknown unit{hint(unit, units)}")
    if unit in TIME_UNITS:
        factor /= next((ps for end, ps in _COLUMN_TIMES.items() if column.endswith(end)), 1)
    return repr(float(number) * factor)


def _factor(unit: str) -> float | None:
    for units in (SIZE_UNITS, TIME_UNITS, FREQUENCY_UNITS, FLOPS_UNITS):
        if unit in units:
            return float(units[unit])
    size, slash, per = unit.partition("/")
    return float(SIZE_UNITS[size]) if slash and per == "s" and size in SIZE_UNITS else None

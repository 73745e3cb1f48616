"""A database of DuckDB in memory."""

from __future__ import annotations

from typing import Any

from buddysim.base.parsers.refusal import refusal


class Database:
    """A database that exists as long as this object.

    Parameters
    ----------
    begin : of errors
    """

    def __init__(self, begin: str) -> None:
        self._begin = begin
        import duckdb

        try:
            self._connection = duckdb.connect()
        except Exception as error:
            raise refusal(error, begin) from None

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, which may change the database."""
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(statement).fetchall()
        except Exception as error:
            raise refusal(error, self._begin) from None
        return rows

    def table(self, query: str, begin: str) -> Any:
        """Return the Arrow table of a query, with DuckDB's own words where it is wrong."""
        try:
            return self._connection.sql(query).to_arrow_table()
        except Exception as error:
            raise refusal(error, begin) from None

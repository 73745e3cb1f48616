"""Results as pandas data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError

if TYPE_CHECKING:
    import pandas

#: Prefix of the keys of a result's parts: `per_kernel` has a dict for each kernel.
PARTS = "per_"


def frame(rows: Sequence[Mapping[str, Any]], index: str | None = None) -> pandas.DataFrame:
    """A data frame with a row for each dict.

    Raises
    ------
    BuddysimError : pandas is not installed
    """
    try:
        import pandas
    except ImportError:
        raise BuddysimError(
            "to_dataframe needs pandas, which is not installed: pip install 'buddysim[data]' (or pip install pandas)"
        ) from None
    made = pandas.DataFrame(list(rows))
    return made if index is None else made.set_index(index)


def result_rows(results: Mapping[str, Mapping[str, Any]], of: str) -> list[dict[str, Any]]:
    """The rows of results.

    Parameters
    ----------
    results : what `SchemeResult.to_dict` gives, by scheme name
    of : ``run``: a row for each scheme, a column for each counter; or what a result has parts of: a row for each one

    Raises
    ------
    BuddysimError : results have no such parts
    """
    if of == "run":
        return [{"scheme": scheme, **_counters(result)} for scheme, result in results.items()]
    first = next(iter(results.values()), {})
    known = ["run", *(key.removeprefix(PARTS) for key in first if key.startswith(PARTS))]
    if of not in known:
        raise BuddysimError(f"to_dataframe: {of!r}: expected one of {', '.join(known)}")
    return [{"scheme": scheme, **part} for scheme, result in results.items() for part in result[PARTS + of]]


def _counters(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "provenance" and not key.startswith(PARTS)}

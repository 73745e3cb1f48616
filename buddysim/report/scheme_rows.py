"""Which schemes have a row in the table of `train`, in which order: those that fit by time, then the others.

At most twelve rows. Schemes with equal cells share the row of the simplest one. Lossy schemes are behind the others
that fit, and behind all others where no other fits, unless they are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from buddysim.report.fit_answer import AS_IS, is_lossy, makes_it_fit, rounded_ms, shortfall_bytes
from buddysim.training.schemes import REGISTRY

Flat = Mapping[str, Any]
Results = Mapping[str, Flat]

MAX_ROWS = 12
#: Rows of schemes that don't fit, where more rows of either kind would not do.
_ROWS_THAT_DO_NOT_FIT = 4


@dataclass(frozen=True)
class SchemeRows:
    """Rows of a table of schemes.

    Attributes
    ----------
    shown : the scheme of each row, in order
    equal : by the scheme of a row, others whose cells are the same
    idle : schemes without a row that have nothing to do on the network
    left_out : other schemes without a row
    """

    shown: tuple[str, ...]
    equal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    idle: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def rows_of(results: Results, cells: Callable[[str], Sequence[str]], allow_lossy: bool = False) -> SchemeRows:
    """Return the rows of some results.

    Parameters
    ----------
    cells : what a scheme's row shows
    """
    ordered = in_order(results, allow_lossy)
    groups = _groups(ordered, results, cells)
    leaders = {group[0]: tuple(group[1:]) for group in groups}
    active = [name for name in leaders if not results[name]["nothing_to_do"]]
    idle = [name for name in leaders if results[name]["nothing_to_do"]]
    if len(leaders) <= MAX_ROWS:
        return SchemeRows(tuple(leaders), {name: more for name, more in leaders.items() if more})
    shown = _shortened(active, results)
    every_idle = [name for leader in idle for name in (leader, *leaders[leader])]
    left_out = [name for leader in active if leader not in shown for name in (leader, *leaders[leader])]
    equal = {name: leaders[name] for name in shown if leaders[name]}
    return SchemeRows(tuple(shown), equal, tuple(every_idle), tuple(left_out))


def in_order(results: Results, allow_lossy: bool = False) -> list[str]:
    """The schemes that fit, fastest first, then the others, the nearest first, then those with nothing to do."""
    simplest_first = simplicity(results)
    lossless_fits = any(makes_it_fit(one) and not is_lossy(one) for one in results.values())

    def key(name: str) -> tuple[Any, ...]:
        one = results[name]
        lossy = is_lossy(one) and not allow_lossy
        shortfall = 0 if one["fits"] else shortfall_bytes(one)
        return (
            bool(one["nothing_to_do"]), lossy and not lossless_fits, not one["fits"], lossy and bool(one["fits"]),
            shortfall, rounded_ms(one), simplest_first[name],
        )  # fmt: skip

    return sorted(results, key=key)


def simplicity(results: Results) -> dict[str, tuple[Any, ...]]:
    """By scheme, a key that is lowest for the simplest: moves and encodes nothing, loses nothing, is in frameworks."""
    known = {name: position for position, name in enumerate(REGISTRY.names())}
    return {
        name: (
            bool(one["link.bytes"]), bool(one["encode_ms"] or one["decode_ms"]), is_lossy(one), name not in AS_IS,
            not _in_frameworks(name), known.get(name, len(known)), name,
        )
        for name, one in results.items()
    }  # fmt: skip


def _in_frameworks(name: str) -> bool:
    """Whether a scheme is what PyTorch has of its own; not of a saved result's unknown scheme."""
    return name in REGISTRY and getattr(REGISTRY.find(name), "FAMILY", "") in ("baselines", "pytorch")


def _groups(ordered: Sequence[str], results: Results, cells: Callable[[str], Sequence[str]]) -> Iterator[Sequence[str]]:
    """Schemes with equal cells, the simplest first; the oracle is always alone."""
    simplest_first = simplicity(results)
    groups: dict[tuple[Any, ...], list[str]] = {}
    for name in ordered:
        one = results[name]
        alone = name if not one["memory.capacity_bytes"] else ""
        groups.setdefault((alone, is_lossy(one), one["nothing_to_do"], *cells(name)), []).append(name)
    for group in groups.values():
        yield sorted(group, key=simplest_first.__getitem__)


def _shortened(active: Sequence[str], results: Results) -> list[str]:
    """At most twelve of the schemes with an effect, "as is" among them."""
    fitting = [name for name in active if results[name]["fits"]]
    others = [name for name in active if not results[name]["fits"]]
    n_others = min(len(others), max(_ROWS_THAT_DO_NOT_FIT, MAX_ROWS - len(fitting)))
    shown = {*fitting[: MAX_ROWS - n_others], *others[:n_others]}
    plain = next((name for name in AS_IS if name in active), None)
    if plain is not None and plain not in shown:
        same = fitting[: MAX_ROWS - n_others] if results[plain]["fits"] else others[:n_others]
        shown = {*shown} - {same[-1]} | {plain}
    return [name for name in active if name in shown]

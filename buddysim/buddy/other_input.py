"""Targets profiled on one input of a program for a run of another; the paper profiles a smaller input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.buddy.keys_by_allocation import allocation_keys, ordinal_names
from buddysim.buddy.targets import Target, Targets

if TYPE_CHECKING:
    from buddysim.trace import Trace

_MAX_NAMED = 4


def targets_of_other_input(profiled: Targets, trace: Trace) -> Targets:
    """Return the targets of a trace's allocations from those of equal names and order in another trace.

    Where a name has more allocations here than there, the additional ones take its least aggressive target. An
    allocation whose name the other trace lacks takes 1x.

    Parameters
    ----------
    profiled : targets of the other trace, as `profile` returns them
    trace : the trace whose allocations get targets

    Returns
    -------
    Targets; `source` has that of `profiled`, and the keys of allocations ``beyond``, ``unmatched`` and ``unused``

    Raises
    ------
    BuddysimError : no name is the same
    """
    device_there = [a for a in profiled.allocations if a.space == "device"]
    profiled_names = ordinal_names(profiled.allocations)
    index_of_name = {profiled_names[a.index]: a.index for a in device_there}
    of_name: dict[str, list[Target]] = {}
    for a in device_there:
        of_name.setdefault(profiled_names[a.index][0], []).append(profiled.of(a.index))
    own_names, keys = ordinal_names(trace.allocations), allocation_keys(trace.allocations)
    by_index: dict[int, Target] = {}
    beyond, unmatched, used = [], [], set()
    device_here = [a for a in trace.allocations if a.space == "device"]
    for a in device_here:
        ordinal_name = own_names[a.index]
        if ordinal_name in index_of_name:
            by_index[a.index] = profiled.of(index_of_name[ordinal_name])
            used.add(index_of_name[ordinal_name])
        elif ordinal_name[0] in of_name:
            by_index[a.index] = max(of_name[ordinal_name[0]], key=lambda target: target.device_bytes_per_entry)
            beyond.append(keys[a.index])
        else:
            unmatched.append(keys[a.index])
    keys_there = allocation_keys(profiled.allocations)
    if device_here and not by_index:
        raise BuddysimError(
            f"{trace.path}: no device allocation has a name of those in {profiled.source.get('trace')}: here "
            f"{_some(unmatched)}; there {_some([keys_there[a.index] for a in device_there])}: expected another input "
            "of the same program"
        )
    unused = [keys_there[a.index] for a in device_there if a.index not in used]
    source = {**profiled.source, "beyond": beyond, "unmatched": unmatched, "unused": unused}
    return Targets(trace, by_index, source)


def _some(names: list[str]) -> str:
    return ", ".join(shortened(name) for name in names[:_MAX_NAMED]) + (", .." if len(names) > _MAX_NAMED else "")

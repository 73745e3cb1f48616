"""Links between GPU and host, by name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from buddysim.errors import BuddysimError

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.machine.training_table import LinkRate


def link_rate(machine: TrainingMachine, name: str | None) -> LinkRate:
    """The rates of a link of the machine by its name; None for the one in use."""
    name = name or machine.link
    if name not in machine.links:
        near = difflib.get_close_matches(name, machine.links, 1, 0.4)
        hint = f"did you mean {near[0]}? " if near else ""
        raise BuddysimError(f"link {name!r}: unknown: {hint}expected one of {', '.join(machine.links)}")
    return machine.links[name]

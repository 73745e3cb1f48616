"""Links between GPU and host, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.machine.training_table import HostLinkConfig


def link_rate(machine: TrainingMachine, name: str | None) -> HostLinkConfig:
    """The rates of a link of the machine by its name; None for the one in use."""
    name = name or machine.link
    if name not in machine.links:
        names = ", ".join(machine.links)
        raise BuddysimError(f"link {shortened(name)}: expected one of {names}{hint(name, machine.links)}")
    return machine.links[name]

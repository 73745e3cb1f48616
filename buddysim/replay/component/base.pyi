from collections.abc import Iterator
from typing import ClassVar

from buddysim.machine import Machine
from buddysim.machine.section import Section

class Component:
    SUMMARY: ClassVar[str]
    SECTION: ClassVar[type[Section] | None]
    def configure(self, machine: Machine) -> None: ...
    @staticmethod
    def misfits(machine: Machine) -> Iterator[str]: ...

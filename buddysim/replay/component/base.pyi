from collections.abc import Iterator
from typing import ClassVar

from buddysim.machine import Machine

class Component:
    SUMMARY: ClassVar[str]
    @staticmethod
    def misfits(machine: Machine) -> Iterator[str]: ...

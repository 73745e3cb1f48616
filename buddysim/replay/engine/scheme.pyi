from typing import ClassVar

from buddysim.machine import Machine
from buddysim.machine.section import Section

class SchemeBase:
    SUMMARY: ClassVar[str]
    uses_targets: ClassVar[bool]
    uses_sizes: ClassVar[bool]
    checks_capacity: ClassVar[bool]
    allocations_in_host_memory: ClassVar[bool]
    assumptions: ClassVar[dict[str, str]]
    SECTION: ClassVar[type[Section] | None]
    SECTION_NAME: ClassVar[str | None]
    COUNTERS: ClassVar[dict[str, str]]
    def configure(self, machine: Machine, allocated_entries: int, capacity_bytes: int | None) -> None: ...
    def device_bytes(self, occupied_bytes: int) -> int: ...

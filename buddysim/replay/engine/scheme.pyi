from typing import ClassVar

from buddysim.machine import Machine
from buddysim.machine.section import Section

class SchemeBase:
    SUMMARY: ClassVar[str]
    uses_targets: ClassVar[bool]
    uses_sizes: ClassVar[bool]
    needs_room: ClassVar[bool]
    on_host: ClassVar[bool]
    oversubscription_key: ClassVar[str | None]
    assumptions: ClassVar[dict[str, str]]
    SECTION: ClassVar[type[Section] | None]
    COUNTERS: ClassVar[dict[str, str]]
    def configure(self, machine: Machine, allocated_entries: int) -> None: ...

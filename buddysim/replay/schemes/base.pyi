from fractions import Fraction
from typing import ClassVar

from buddysim.buddy import ProfileOptions, Target
from buddysim.machine import Machine
from buddysim.machine.section import Section
from buddysim.replay.component.shown import ShownRow
from buddysim.replay.primitives.kinds import Placement

class SchemeBase:
    SUMMARY: ClassVar[str]
    uses_targets: ClassVar[bool]
    uses_sizes: ClassVar[bool]
    checks_capacity: ClassVar[bool]
    allocations_in_host_memory: ClassVar[bool]
    assumptions: ClassVar[dict[str, str]]
    SECTIONS: ClassVar[dict[str, type[Section]]]
    TRAFFIC: ClassVar[tuple[str, ...]]
    QUEUES: ClassVar[tuple[str, ...]]
    FOOTPRINT: ClassVar[dict[str, str]]
    COUNTERS: ClassVar[dict[str, str]]
    ENGINE_COUNTERS: ClassVar[dict[str, str]]
    SHOWN: ClassVar[tuple[ShownRow, ...]]
    LAWS: ClassVar[tuple[str, ...]]
    def configure(self, machine: Machine, allocated_entries: int, capacity_bytes: int | None) -> None: ...
    @staticmethod
    def placement(machine: Machine, target: Target) -> tuple[Placement, int]: ...
    @staticmethod
    def entry_bytes(machine: Machine, target: Target) -> dict[str, Fraction]: ...
    @staticmethod
    def capacities(machine: Machine) -> dict[str, int]: ...
    @staticmethod
    def allocation_counters(fills: int, writebacks: int, overflow_accesses: int) -> dict[str, float]: ...
    @staticmethod
    def profile_options(options: ProfileOptions, machine: Machine) -> ProfileOptions: ...
    @property
    def has_faults(self) -> bool: ...
    def device_bytes(self, occupied_bytes: int) -> int: ...

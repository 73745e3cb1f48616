"""Machines that can replay a trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import Field, PrivateAttr, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from buddysim.base.budget import within_budget
from buddysim.base.dotted import nested, taken
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint
from buddysim.base.kinds import registry
from buddysim.base.plugins import cached_by_plugins
from buddysim.machine import presets
from buddysim.machine.machine_file import MachineFile
from buddysim.machine.parts.clock import ClockConfig
from buddysim.machine.parts.compression import CompressionConfig
from buddysim.machine.parts.copies import CopiesConfig
from buddysim.machine.parts.crossbar import CrossbarConfig
from buddysim.machine.parts.dram import DramConfig, DramTimingConfig
from buddysim.machine.parts.geometry import SECTOR_BYTES
from buddysim.machine.parts.kernel import KernelConfig
from buddysim.machine.parts.l1 import L1Config
from buddysim.machine.parts.l2 import L2Config
from buddysim.machine.parts.link import LinkConfig
from buddysim.machine.parts.sm import SmConfig
from buddysim.machine.scheme_sections import plugin_sections, scheme_sections, section_name
from buddysim.machine.section import S, Section, canonical_figures, field_keys, parse_section, value_of
from buddysim.machine.training_table import TrainingConfig, training_field
from buddysim.machine.units import Bandwidth, Frequency, Time, format_size

MAX_L1_BYTES = 2**30
"""Bytes of all L1 caches together: a simulator keeps about a third of this as their tags and states."""

MAX_DRAM_TIMING_PS = 10**7

_NOT_SIMULATED = ("name", "description")
#: Tables of a file that a replay does not read.
_OTHER_TABLES = ("sources", "training")


class Machine(MachineFile):
    """A machine to simulate, with the source of each of its figures.

    ``Machine.load("p100-nvlink2")``, ``Machine.load("mine.toml")``; sections are attributes (``m.l2.size``), those of
    replay schemes too (``m.um.page_size``); those of policies are found by their class (`section_of`). Times and
    bandwidths are resolved by `ps` and `bytes_per_s`.
    """

    RULES = (
        "`l2.load_to_use` includes `l1.load_to_use`; `dram.load_to_use` and `link.load_to_use` include "
        "`l2.load_to_use`.",
        "`dram.load_to_use` also includes an activate and the first burst: it is at least `l2.load_to_use` + `tRCD` + "
        "`tCL` + 32 B / `dram.pseudo_channel_bandwidth`.",
        "One of `l2.slices` and `dram.channels` is a multiple of the other, so that each slice has its own channels.",
        "`l2.partitions` is 1 with `crossbar.input_queued`.",
        "`dram.timing.tREFI` is 0, or longer than `dram.timing.tRFC` and the refresh that `dram.refresh` chooses.",
        "`dram.timing.tCCD_L` is at most 56 bursts of 32 B long.",
        "Every time in `[dram.timing]` but `tREFI` is at most 10 us.",
        "All L1 caches together have at most 1 GiB.",
    )

    clock: ClockConfig
    sm: SmConfig
    kernel: KernelConfig = Field(default_factory=KernelConfig)
    l1: L1Config
    crossbar: CrossbarConfig
    l2: L2Config
    dram: DramConfig
    link: LinkConfig
    copies: CopiesConfig = Field(default_factory=CopiesConfig)
    compression: CompressionConfig = Field(default_factory=CompressionConfig)
    training: TrainingConfig | None = Field(
        default=None, description="figures of the GPU and its host for simulated training; none: replays only"
    )
    #: Sections of replay schemes and policies that differ from their defaults, by dotted name.
    _of_components: dict[str, Section] = PrivateAttr(default_factory=dict)

    if not TYPE_CHECKING:  # a type checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """The section of a replay scheme."""
            section = None if name.startswith("_") else scheme_sections().get(name)
            if section is None:
                return super().__getattr__(name)
            return self._of_components.get(name) or section()

    @classmethod
    def presets(cls) -> list[str]:
        """Return the names of the machines that come with buddysim, in alphabetical order."""
        return presets.replay_presets()

    @classmethod
    @within_budget
    def load(cls, machine: str | os.PathLike[str]) -> Machine:
        """Load a preset by its name, or a machine file by its path.

        Raises
        ------
        BuddysimError : it is neither, is for training only, or has wrong or missing keys
        """
        name = os.fspath(machine)
        if name in presets.training_presets():
            known = cls.presets()
            raise BuddysimError(
                f"{name} describes a GPU for training only and can't replay a trace: expected one of "
                f"{', '.join(known)}, or a machine file ending in .toml{hint(name, known)}"
            )
        return cls._checked(presets.machine_content(name, cls.presets), name)

    def section_of(self, section: type[S]) -> S:
        """The section of a replay scheme or a policy, by its class."""
        name = next(name for name, each in component_sections().items() if each is section)
        own: Any = self._of_components.get(name) or section()
        return cast(S, own)

    def policies(self) -> dict[str, Any]:
        """A new instance, for one run, of each policy that a key names, by its kind (`buddysim.base.kinds`)."""
        policies = {kind: _policy_of(self, key, kind)() for key, kind in policy_keys()}
        for policy in policies.values():
            policy.configure(self)
        return policies

    @property
    def clocks(self) -> dict[str, Frequency]:
        """The clocks by the names that units use."""
        return {"core": self.clock.core, "dram": self.clock.dram}

    def exact_ps(self, time: Time) -> Fraction:
        """A time of this machine in picoseconds, exactly."""
        return time.picoseconds(self.clocks)

    def ps(self, time: Time) -> int:
        """A time of this machine in picoseconds, rounded to the nearest (halves up)."""
        return _rounded(self.exact_ps(time))

    def bytes_per_s(self, bandwidth: Bandwidth) -> int:
        """A bandwidth of this machine in bytes per second, rounded to the nearest (halves up)."""
        return _rounded(bandwidth.bytes_per_s(self.clocks))

    @property
    def first_data_ps(self) -> Fraction:
        """From the activation of a row to the end of its first 32 B: tRCD + tCL + one burst, exactly."""
        burst = SECTOR_BYTES * Fraction(10**12) / self.dram.pseudo_channel_bandwidth.bytes_per_s(self.clocks)
        return self.exact_ps(self.dram.timing.tRCD) + self.exact_ps(self.dram.timing.tCL) + burst

    @property
    def dram_bytes_per_s(self) -> int:
        """Peak bandwidth of device memory in bytes per second."""
        one = self.bytes_per_s(self.dram.pseudo_channel_bandwidth)
        return self.dram.channels * self.dram.pseudo_channels * one

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Machine:
        problems = list(_misfits(self))
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @classmethod
    def _parsed(cls, content: Mapping[str, Any], problems: list[ErrorDetails]) -> Self | None:
        sections, tables = component_sections(), dict[str, Any]()
        for name in sections:
            if name in cls.model_fields:
                raise BuddysimError(f"replay scheme: SECTIONS: every machine file has a section [{name}] already")
            content, tables[name] = taken(content, name)
        machine = parse_section(cls, content, problems)
        for name, section in sections.items():
            parsed = parse_section(section, tables[name], problems, name)
            if machine is not None and parsed is not None and parsed != section():
                machine._of_components[name] = parsed
        if machine is not None and not problems:  # a scheme refuses what does not fit itself
            misfits = [
                text for key, kind in _policies_of(Machine) for text in _policy_of(machine, key, kind).misfits(machine)
            ]
            problems += [ErrorDetails(type="misfit", loc=(), msg=text, input=None) for text in misfits]
        return machine

    @classmethod
    def _possible_keys(cls) -> list[str]:
        return [*(key for key, _ in keys()), *(key for key, _ in field_keys(TrainingConfig, "training."))]

    def _parts(self) -> Mapping[str, object]:
        own = {name: getattr(self, name) for name in type(self).model_fields if name not in _OTHER_TABLES}
        others = {name: self._of_components.get(name) or section() for name, section in component_sections().items()}
        return {**own, **nested(others), "training": self.training}

    def _counted(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """All but texts, the training table, sections of policies that are not chosen, and some defaults.

        Those are sections of policies and plug-ins' schemes that have only defaults: a plug-in that is loaded does not
        change the checksum of a machine that says nothing of it.
        """
        left_out: set[str] = set()
        in_use = {section_name(kind, figures[key]) for key, kind in policy_keys()}
        policies, schemes = policy_sections(), scheme_sections()
        for name, section in [*policies.items(), *((name, schemes[name]) for name in plugin_sections())]:
            defaults = canonical_figures(section(), name)
            if name in policies.keys() - in_use or all(figures[key] == value for key, value in defaults.items()):
                left_out |= defaults.keys()
        return {
            key: value
            for key, value in figures.items()
            if key.partition(".")[0] not in (*_NOT_SIMULATED, "training") and key not in left_out
        }

    @classmethod
    def _field(cls, key: str) -> FieldInfo:
        return training_field(key) if key.startswith("training.") else dict(keys())[key]

    def _is_of_others(self, key: str) -> bool:
        """A file for training may name the sources of links that every machine has."""
        return key.startswith("training.links.")


def own_keys() -> Iterator[tuple[str, FieldInfo]]:
    """Every dotted key of the sections that all machines have, with its field, in the order of a file."""
    for key, field in field_keys(Machine):
        if key not in _OTHER_TABLES:
            yield key, field


@cache
def _policies_of(section: type[Section], prefix: str = "") -> tuple[tuple[str, str], ...]:
    """Every dotted key of a section whose values are names of policies, and their kind."""
    named = ((key, value_of(field).members) for key, field in field_keys(section, prefix) if key not in _OTHER_TABLES)
    return tuple((key, kind) for key, kind in named if kind)


@cached_by_plugins
def policy_keys() -> tuple[tuple[str, str], ...]:
    """Every dotted key whose values are names of policies, and their kind; those of schemes come last."""
    schemes = (_policies_of(section, f"{name}.") for name, section in scheme_sections().items())
    return (*_policies_of(Machine), *chain.from_iterable(schemes))


@cached_by_plugins
def policy_sections() -> dict[str, type[Section]]:
    """The sections of policies, by dotted name; each of their keys has a default."""
    return {
        section_name(kind, name): policy.SECTION
        for _, kind in policy_keys()
        for name, policy in registry(kind).items()
        if policy.SECTION
    }


def component_sections() -> dict[str, type[Section]]:
    """The sections of replay schemes and of policies, by dotted name."""
    return {**scheme_sections(), **policy_sections()}


def keys() -> Iterator[tuple[str, FieldInfo]]:
    """Return every dotted key that a replay may depend on, with its field; keys of schemes and policies come last."""
    yield from own_keys()
    yield from _keys_in(component_sections())


def _keys_in(sections: Mapping[str, type[Section]]) -> Iterator[tuple[str, FieldInfo]]:
    for name, section in sections.items():
        yield from field_keys(section, f"{name}.")


def _rounded(exact: Fraction) -> int:
    """Return the nearest whole number, halves up."""
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


def _policy_of(machine: Machine, key: str, kind: str) -> Any:
    name: Any = machine
    for part in key.split("."):
        name = getattr(name, part)
    return registry(kind).find(name)


def _misfits(machine: Machine) -> Iterator[str]:
    timing, dram = machine.dram.timing, machine.dram
    if machine.sm.count * machine.l1.size > MAX_L1_BYTES:
        one, most = format_size(machine.l1.size), format_size(MAX_L1_BYTES)
        yield f"l1.size: {machine.sm.count} SMs x {one} is more than {most}"
    for rule in DramTimingConfig.model_fields:
        if rule != "tREFI" and machine.exact_ps(getattr(timing, rule)) > MAX_DRAM_TIMING_PS:
            yield f"dram.timing.{rule}: {getattr(timing, rule)} is out of range: expected at most 10 us"
    first_data = machine.first_data_ps
    l1, l2 = machine.exact_ps(machine.l1.load_to_use), machine.exact_ps(machine.l2.load_to_use)
    if machine.l2.slices % dram.channels and dram.channels % machine.l2.slices:
        yield f"l2.slices: {machine.l2.slices} and dram.channels, {dram.channels}: expected a multiple of each other"
    if l2 < l1:
        yield (
            f"l2.load_to_use: {machine.l2.load_to_use} is less than l1.load_to_use, {machine.l1.load_to_use}, "
            "which it contains"
        )
    for key, latency in (("dram", dram.load_to_use), ("link", machine.link.load_to_use)):
        if machine.exact_ps(latency) < l2:
            yield (
                f"{key}.load_to_use: {latency} is less than l2.load_to_use, {machine.l2.load_to_use}, which it contains"
            )
    if l2 <= machine.exact_ps(dram.load_to_use) < l2 + first_data:
        yield (
            f"dram.load_to_use: {dram.load_to_use} does not include l2.load_to_use and an activate: expected at least "
            f"{float((l2 + first_data) / 1000):.2f} ns (l2.load_to_use + tRCD + tCL + one 32 B burst)"
        )
    if machine.exact_ps(timing.tREFI) and machine.exact_ps(timing.tREFI) <= machine.exact_ps(timing.tRFC):
        yield f"dram.timing.tREFI: {timing.tREFI} is not longer than tRFC, {timing.tRFC}"
    if machine.l2.partitions > 1 and machine.crossbar.input_queued:
        yield f"l2.partitions: {machine.l2.partitions} with crossbar.input_queued: expected 1"

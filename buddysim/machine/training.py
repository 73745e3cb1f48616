"""Machines for the training simulator: the `[training]` table of a machine file.

Some machine files have this table in addition to the description that a replay needs; others have only this table.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Self

from pydantic import model_validator
from pydantic.fields import FieldInfo

from buddysim.base.budget import within_budget
from buddysim.base.dotted import flat, nested, unknown_key
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.textfile import parse_toml
from buddysim.machine import presets
from buddysim.machine.machine_file import MachineFile
from buddysim.machine.model import Machine, component_sections
from buddysim.machine.section import field_keys
from buddysim.machine.training_table import HostLinkConfig, TrainingConfig, training_field
from buddysim.machine.units import parse_size

_LINKS = resources.files("buddysim.machine") / "links.toml"
_GPU_LINKS = resources.files("buddysim.machine") / "gpu_links.toml"
_PART = "training"
_DEVICE_MEMORY, _USABLE_MEMORY = f"{_PART}.device_memory", f"{_PART}.usable_memory"
_HOST_MEMORY, _MAX_PINNED_MEMORY = f"{_PART}.host_memory", f"{_PART}.max_pinned_memory"


class TrainingMachine(MachineFile):
    """A GPU in training, with the source of each of its figures.

    ``TrainingMachine.load("titan-x")``, ``TrainingMachine.load("mine.toml")``. Rates are plain integers (bytes or
    operations per second), times integer picoseconds. `links` holds the links that every machine has and its own.
    """

    training: TrainingConfig

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the machines that come with buddysim, in alphabetical order."""
        both = [name for name in presets.replay_presets() if _PART in presets.preset(name)]
        return sorted([*both, *presets.training_presets()])

    @classmethod
    @within_budget
    def load(cls, machine: str | os.PathLike[str] | TrainingMachine) -> TrainingMachine:
        """Load a machine that comes with buddysim by its name, or a machine file by its path.

        Raises
        ------
        BuddysimError
            where it is neither, has no ``[training]`` table, or wrong or missing keys in it
        """
        if isinstance(machine, TrainingMachine):
            return machine
        name = os.fspath(machine)
        content = presets.machine_content(name, cls.names)
        if presets.is_path(name):  # those that come with buddysim are checked by its tests: their schemes load slowly
            _check_sections(content, name)
        if _PART not in content:
            raise BuddysimError(
                f"{name}: no [{_PART}] table, so it can't be used for training: expected one of "
                f"{', '.join(cls.names())}, or a machine file with that table"
            )
        return cls._checked(_with_links(_own_part(content)), name)

    def with_overrides(
        self, overrides: Mapping[str, object], where: str | None = None, source: str | None = None
    ) -> Self:
        """Return the machine with some keys changed.

        Unless that is set too, all of a changed device memory can be used, and added host memory can be pinned.
        """
        return super().with_overrides(self._with_implied(overrides), where, source)

    def checksum_with(self, overrides: Mapping[str, object]) -> str:
        """The checksum of ``with_overrides(overrides)``."""
        return super().checksum_with(self._with_implied(overrides))

    def _with_implied(self, overrides: Mapping[str, object]) -> Mapping[str, object]:
        if _DEVICE_MEMORY in overrides and self.training.usable_memory is not None:
            overrides = {_USABLE_MEMORY: overrides[_DEVICE_MEMORY], **overrides}
        memory = overrides.get(_HOST_MEMORY)
        if memory is not None and _MAX_PINNED_MEMORY not in overrides:
            with contextlib.suppress(ValueError):  # refused below, by its key
                unpinnable = self.host_memory_bytes - self.max_pinned_bytes
                overrides = {**overrides, _MAX_PINNED_MEMORY: f"{max(0, parse_size(memory) - unpinnable)} B"}
        return overrides

    @property
    def issued_flops(self) -> int:
        """Single-precision operations per second with one instruction per warp scheduler and cycle."""
        return self.training.fp32_single_issue or self.training.fp32

    @property
    def clock_hz(self) -> int:
        """Clock at which the peak rate is reached, in hertz."""
        return self.training.clock.hz

    @property
    def dram_bytes_per_s(self) -> int:
        """Peak bandwidth of device memory, in bytes per second."""
        return int(self.training.dram_bandwidth.bytes_per_s({}))

    @property
    def memory_bytes(self) -> int:
        """Capacity of device memory that a process can have, in bytes."""
        return self.training.usable_memory or self.training.device_memory

    @property
    def workspace_bytes(self) -> int:
        """Bytes that PyTorch allocates for cuBLAS in each thread; 0 where that isn't known."""
        return self.training.cublas_workspace or 0

    def bytes_outside_allocator(self, gpus: int = 1) -> int:
        """Bytes that a process takes outside of PyTorch's allocator: its CUDA context, and NCCL's for several GPUs."""
        return (self.training.context_memory or 0) + (gpus > 1) * (self.training.nccl_memory or 0)

    @property
    def launch_ps(self) -> int:
        """Overhead of each kernel in addition to its work, in picoseconds."""
        return round(self.training.kernel_launch_overhead.picoseconds({}))

    @property
    def library(self) -> str:
        """Library version whose calibration is the default."""
        return self.training.conv_library

    @property
    def link(self) -> str:
        """Name of the link in use."""
        return self.training.link

    @property
    def links(self) -> dict[str, HostLinkConfig]:
        """Every link by its name."""
        return self.training.links

    @property
    def link_rate(self) -> HostLinkConfig:
        """The link in use."""
        return self.training.links[self.training.link]

    @property
    def host_memory_bytes(self) -> int:
        """Capacity of host memory, in bytes."""
        return self.training.host_memory

    @property
    def host_bytes_per_s(self) -> int:
        """Peak bandwidth of host memory, in bytes per second."""
        return int(self.training.host_memory_bandwidth.bytes_per_s({}))

    @property
    def nvme_read_bytes_per_s(self) -> int:
        """Bandwidth of reads from the host's NVMe drives, in bytes per second."""
        return int(self.training.nvme_read_bandwidth.bytes_per_s({}))

    @property
    def nvme_write_bytes_per_s(self) -> int:
        """Bandwidth of writes to the host's NVMe drives, in bytes per second."""
        return int(self.training.nvme_write_bandwidth.bytes_per_s({}))

    @property
    def max_pinned_bytes(self) -> int:
        """Maximum host memory that can be pinned, in bytes."""
        return self.training.max_pinned_memory

    @classmethod
    def _possible_keys(cls) -> list[str]:
        return [key for key, _ in field_keys(TrainingConfig, f"{_PART}.")]

    @classmethod
    def _field(cls, key: str) -> FieldInfo:
        return training_field(key)

    def _parts(self) -> Mapping[str, object]:
        return {_PART: self.training}

    @model_validator(mode="after")
    def _parts_fit_together(self) -> TrainingMachine:
        if self.link not in self.links:
            raise ValueError(
                f"{_PART}.link: {shortened(self.link)} is not a link: expected one of "
                f"{', '.join(self.links)}{hint(self.link, self.links)}"
            )
        if self.training.gpu_link is not None and self.training.gpu_link not in gpu_links():
            known = list(gpu_links())
            raise ValueError(
                f"{_PART}.gpu_link: {shortened(self.training.gpu_link)} is not a link between GPUs: expected one of "
                f"{', '.join(known)}{hint(self.training.gpu_link, known)}"
            )
        if self.max_pinned_bytes > self.host_memory_bytes:
            raise ValueError(
                f"{_PART}.max_pinned_memory: {self.text('training.max_pinned_memory')} is more than "
                f"{_PART}.host_memory, {self.text('training.host_memory')}"
            )
        return self


def shared_links() -> dict[str, dict[str, str]]:
    """The links that every machine has, as `links.toml` names them."""
    links: dict[str, dict[str, str]] = parse_toml(_LINKS.read_text(encoding="utf-8"))
    return links


def gpu_links() -> dict[str, dict[str, Any]]:
    """The links between GPUs of a node, as `gpu_links.toml` names them."""
    links: dict[str, dict[str, Any]] = parse_toml(_GPU_LINKS.read_text(encoding="utf-8"))
    return links


def _check_sections(content: Mapping[str, Any], where: str) -> None:
    """Refuses a section that no machine file has."""
    known = [*Machine.model_fields, *nested(dict.fromkeys(component_sections()))]
    for name in content:
        if name not in known:
            raise BuddysimError(f"{where}: {unknown_key(name, known)}")


def _own_part(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a machine file's table of training, and the sources of its keys."""
    own_part = {name: content[name] for name in ("name", "description", _PART, "sources") if name in content}
    if isinstance(own_part.setdefault("sources", {}), Mapping):
        own_part["sources"] = {key: text for key, text in flat(own_part["sources"]) if key.startswith(f"{_PART}.")}
    return own_part


def _with_links(content: dict[str, Any]) -> dict[str, Any]:
    """Add the links that every machine has; a machine's own link of the same name takes precedence."""
    table = content[_PART]
    if not all(isinstance(part, Mapping) for part in (table, content["sources"])):
        return content
    if not isinstance(table.get("links", {}), Mapping):
        return content
    links: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, link in shared_links().items():
        links[name] = {key: value for key, value in link.items() if key in HostLinkConfig.model_fields}
        sources |= dict(_link_sources(name, link))
    links |= table.get("links", {})
    return {**content, _PART: {**table, "links": links}, "sources": {**sources, **content["sources"]}}


def _link_sources(name: str, link: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in HostLinkConfig.model_fields:
        if key in link:
            rate = f"{key.rpartition('_')[2]}_source"
            yield f"{_PART}.links.{name}.{key}", link.get(rate, link["source"])

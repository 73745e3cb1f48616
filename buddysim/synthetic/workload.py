"""The base of synthetic workloads: a frozen set of parameters that determines a trace."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.parsers.typed import InvalidContentError, model_of
from buddysim.machine import fields
from buddysim.synthetic.parts.sizes import check_pattern, pattern_classes
from buddysim.trace import Provenance, TraceWriter

FIRST_BASE = 0x7F00_0000_0000
PAGE_BYTES = 2 * 2**20
"""Each allocation starts on a 2 MiB page of its own, as with CUDA's allocator."""

Footprint = Annotated[int, fields.size("128 B", "1 TiB")]
Seed = Annotated[int, fields.count(0, 2**63 - 1)]
Laps = Annotated[int, fields.count(1, 10**6)]
WarpsPerBlock = Annotated[int, fields.count(1, 32)]
OpsPerWarp = Annotated[int, fields.count(1, 2**20)]
UseDistance = Annotated[int, fields.count(0, 10**6)]
Gap = Annotated[int, fields.count(0, 10**6)]
Space = Annotated[str, fields.one_of("device", "host")]
Switch = Annotated[bool, fields.switch()]


class Workload(BaseModel):
    """A synthetic workload: its fields are its parameters, `write` writes its kernels.

    Lists show the first line of a workload's docstring.

    Attributes
    ----------
    name : of the workload, for ``make``; empty for a base class
    licence : of the traces that it writes
    trial : settings with which `check-plugin` and tests write a trace, where its defaults make a large one
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str] = ""
    licence: ClassVar[str] = "BSD-3-Clause"
    trial: ClassVar[Mapping[str, str]] = {}

    sizes: Annotated[str, fields.text(200)] = Field(
        default="none",
        description="compressed sizes of the entries, a repeating pattern: '32 B:3, 128 B:1'; "
        "none: the trace has no sizes, a run draws them from its distribution",
    )

    def write(self, writer: TraceWriter) -> None:
        """Write the allocations and kernels, in program order."""
        raise NotImplementedError

    @classmethod
    def parameters(cls) -> Iterator[tuple[str, str, str]]:
        """Yield name, default and description of each parameter, the workload's own first."""
        own = [name for name in cls.model_fields if name != "sizes"]
        shown = cls().model_dump()
        for name in [*own, "sizes"]:
            default = shown[name]
            text = str(default).lower() if isinstance(default, bool) else str(default)
            yield name, text, cls.model_fields[name].description or ""

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> Self:
        """Return the workload with some parameters given as text: ``{"footprint": "64 MiB"}``."""
        try:
            workload = model_of(cls, dict(settings), cls.name)
            check_pattern(workload.sizes)
            workload.check()
        except InvalidContentError as error:
            raise BuddysimError(f"{cls.name}: {'; '.join(cls._lines(error.problems))}") from None
        except ValueError as error:
            raise BuddysimError(f"{cls.name}: {error}") from None
        return workload

    def check(self) -> None:
        """Check rules between parameters; raise a ValueError that begins with the parameter's name."""

    @classmethod
    def _lines(cls, problems: Sequence[ErrorDetails]) -> Iterator[str]:
        for problem in problems:
            key = ".".join(str(part) for part in problem["loc"])
            if problem["type"] == "extra_forbidden":
                near = hint(key, cls.model_fields)
                yield f"{shortened(key)}: unknown parameter{near}, expected one of {', '.join(cls.model_fields)}"
            else:
                yield f"{key}: {problem.get('ctx', {}).get('error', problem['msg'])}"

    def settings(self) -> list[str]:
        """Return the parameters that differ from their defaults, in the form of ``--set``."""
        default, values = type(self)().model_dump(), self.model_dump()
        return [f"{name}={_text(values[name])}" for name in values if values[name] != default[name]]

    def provenance(self) -> Provenance:
        """Return the provenance of the trace: this workload and its parameters."""
        parameters = ", ".join(f"{name}={_text(value)}" for name, value in self.model_dump().items())
        plugin = getattr(sys.modules[type(self).__module__], "PLUGIN_SOURCE", None)
        options = f" --plugin {shlex.quote(Path(plugin).name)}" if plugin else ""
        options += "".join(f" --set {_quoted(setting)}" for setting in self.settings())
        return Provenance(
            tool="buddysim generate",
            version=buddysim.__version__,
            source=f"synthetic workload {self.name}: {parameters}",
            licence=self.licence,
            command=f"python -m buddysim generate {self.name}{options}",
            assumptions=self.assumptions(),
        )

    def assumptions(self) -> dict[str, str]:
        """Return the assumptions about the trace, by subject."""
        if self.sizes == "none":
            return {"contents": "none: a synthetic trace without values"}
        return {"contents": f"no values; size classes in the repeating pattern {self.sizes}"}

    def allocate(self, writer: TraceWriter, sizes: Mapping[str, int], space: str = "device") -> dict[str, int]:
        """Add allocations to the trace, with their compressed sizes, if any.

        Parameters
        ----------
        writer : of the trace
        sizes : bytes of each allocation, by name
        space : memory of the allocations, ``"device"`` or ``"host"``

        Returns
        -------
        base addresses by name
        """
        bases: dict[str, int] = {}
        base = FIRST_BASE
        numbers = {}
        for name, size in sizes.items():
            numbers[writer.add_allocation(name, base, size, space)] = size  # type: ignore[arg-type]
            bases[name] = base
            base += -(-size // PAGE_BYTES) * PAGE_BYTES
        if self.sizes != "none":
            snapshot = writer.add_snapshot(0, "size pattern")
            for number, size in numbers.items():
                writer.add_size_map(snapshot, number, pattern_classes(self.sizes, -(-size // 128)))
        return bases

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace file; a failed write leaves no file."""
        with TraceWriter(path, self.provenance()) as writer:
            self.write(writer)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(setting: str) -> str:
    return f"'{setting}'" if " " in setting or ":" in setting else setting

"""The first reading of a trace: existing kernels, accessed lines, counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.importers.accelsim.accessed_lines import AccessedLines
from buddysim.importers.accelsim.import_options import AccelsimImportOptions
from buddysim.importers.accelsim.kernel_file import KernelTrace
from buddysim.importers.accelsim.kernelslist import KernelFile, KernelsList, Malloc
from buddysim.importers.accelsim.opcodes import timing_of
from buddysim.trace.model import Provenance


@dataclass
class Survey:
    """The result of the first reading."""

    present: dict[int, KernelFile] = field(default_factory=dict)  # by command index
    code_bytes: dict[int, int] = field(default_factory=dict)  # likewise
    footprint: AccessedLines = field(default_factory=AccessedLines)
    counts: dict[str, int] = field(default_factory=dict)
    latency_sources: dict[str, None] = field(default_factory=dict)
    unknown_opcodes: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)


def survey_kernels(commands: KernelsList, options: AccelsimImportOptions, progress: Callable[[str], object]) -> Survey:
    """Read all kernels once, for existing files, accessed lines and counts."""
    survey = Survey()
    if commands.ignored:
        names = ", ".join(sorted({repr(name[:30]) for name in commands.ignored})[:3])
        survey.warnings.append(
            f"{commands.path}: ignored {len(commands.ignored)} lines that are no known command: {names}"
        )
    for index, command in enumerate(commands.commands):
        if not isinstance(command, KernelFile):
            continue
        if not command.path.is_file():
            problem = f"{commands.path}: line {command.line}: the kernel file {command.path.name} is missing"
            if not options.skip_missing:
                raise BuddysimError(f"{problem} (--skip-missing goes on without it)")
            survey.warnings.append(f"{problem}; skipped")
            continue
        progress(f"surveying {command.path.name}")
        blocks = 0
        with KernelTrace(command.path, include_local=options.include_local) as kernel:
            for block_records, _, ops, lines, pcs in kernel.records():
                blocks += len(block_records)
                survey.footprint.add(kernel.header.name, pcs, ops["n_lines"], lines)
            if not blocks:
                survey.warnings.append(f"{command.path}: a header without thread blocks; skipped")
                continue
            survey.present[index] = command
            survey.code_bytes[index] = kernel.code_bytes
            for name, count in kernel.counts.items():
                survey.counts[name] = survey.counts.get(name, 0) + count
            survey.latency_sources[timing_of(kernel.header.binary_version).source] = None
            survey.unknown_opcodes |= kernel.unknown_opcodes
            survey.versions.add(kernel.header.version)
    if not survey.present:
        raise BuddysimError(f"{commands.path}: none of its kernels has instructions")
    if survey.unknown_opcodes:
        names = ", ".join(sorted(survey.unknown_opcodes)[:8])
        survey.warnings.append(
            f"{len(survey.unknown_opcodes)} opcodes are unknown and take an integer's latency: {names}"
        )
    return survey


def provenance_of(commands: KernelsList, survey: Survey, options: AccelsimImportOptions) -> Provenance:
    counts = survey.counts
    mallocs = any(isinstance(command, Malloc) for command in commands.commands)
    versions = ", ".join(str(version) for version in sorted(survey.versions))
    assumptions = {
        "compute_gaps": "none: every instruction was traced",
        "dependencies": (
            "Dependences follow from the registers that the trace names; predicates are ignored, which is optimistic. "
            "Execution latencies: " + "; ".join(survey.latency_sources)
        ),
        "contents": "Data values are unknown, except those in stores, memcpys and given snapshots.",
        "allocations": (
            (
                "Allocations are the trace's cudaMalloc records"
                if mallocs
                else "The trace has no cudaMalloc records: every copied range is an allocation"
            )
            + ". Other accessed memory is split where instructions' ranges do not overlap. "
            "Sizes are multiples of 128 B. Memory without accesses is missing, so footprints are optimistic."
        ),
        "local memory": (
            "Local memory is included: 4 B words of neighbouring threads lie next to each other."
            if options.include_local
            else "Accesses to local memory are left out: traffic is optimistic."
        ),
        "counts": (
            f"{counts['warp_instructions']} warp instructions, {counts['lane_instructions']} lane instructions, "
            f"{counts['memory_lines']} memory lines ({counts['predicated_off']} predicated off, "
            f"{counts['shared_lines']} of shared and {counts['local_lines']} of local memory, "
            f"{counts['other_lines']} others), {counts['barriers']} barriers; "
            f"{counts['lines']} lines of 128 B, {counts['sectors']} sectors"
        ),
    }
    return Provenance(
        tool=f"Accel-Sim tracer version {versions}, imported by buddysim",
        version=buddysim.__version__,
        source=options.source or commands.path.parent.resolve().name,
        licence=options.licence,
        command=options.command,
        assumptions=assumptions,
    )

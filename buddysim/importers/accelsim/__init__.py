"""Importing the SASS traces of Accel-Sim's tracer; docs/accelsim-import.md describes what is read and assumed."""

from __future__ import annotations

from buddysim.importers.accelsim.command import SUMMARY, add_arguments, import_trace
from buddysim.importers.accelsim.importer import Summary, import_accelsim
from buddysim.importers.accelsim.options import Options, SnapshotFile, parse_snapshot

__all__ = [
    "SUMMARY",
    "Options",
    "SnapshotFile",
    "Summary",
    "add_arguments",
    "import_accelsim",
    "import_trace",
    "parse_snapshot",
]

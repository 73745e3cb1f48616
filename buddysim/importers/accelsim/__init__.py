"""Imports SASS traces of Accel-Sim's tracer; docs/how-to/import-accelsim.md lists the inputs and assumptions."""

from __future__ import annotations

from buddysim.importers.accelsim.command import SUMMARY, add_arguments, import_trace
from buddysim.importers.accelsim.import_options import AccelsimImportOptions, SnapshotFile, parse_snapshot
from buddysim.importers.accelsim.importer import AccelsimImportSummary, import_accelsim

__all__ = [
    "SUMMARY",
    "AccelsimImportOptions",
    "AccelsimImportSummary",
    "SnapshotFile",
    "add_arguments",
    "import_accelsim",
    "import_trace",
    "parse_snapshot",
]

"""Importing the SASS traces of Accel-Sim's tracer; docs/accelsim-import.md says what is read and what is assumed."""

from __future__ import annotations

from buddysim.importers.accelsim.importer import Options, SnapshotFile, Summary, import_accelsim, parse_snapshot

__all__ = ["Options", "SnapshotFile", "Summary", "import_accelsim", "parse_snapshot"]

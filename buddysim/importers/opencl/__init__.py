"""Converts the bundles of an OpenCL capture: `warp.trace.xz`, `meta.jsonl` and snapshots of the buffers."""

from __future__ import annotations

from buddysim.importers.opencl.convert import BundleImportOptions, BundleImportSummary, convert_bundle

__all__ = ["BundleImportOptions", "BundleImportSummary", "convert_bundle"]

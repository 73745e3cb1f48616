"""Refresh of device memory: one file each, chosen by `dram.refresh` (`RefreshBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry

REGISTRY = component_registry("DRAM refresh", __name__, "Refresh")

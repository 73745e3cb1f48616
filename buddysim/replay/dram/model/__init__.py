"""Models of device memory: one file each, chosen by `dram.model` (`DramModelBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry

REGISTRY = component_registry("DRAM model", __name__, "DramModel")

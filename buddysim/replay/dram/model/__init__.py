"""Models of device memory: one file each, chosen by `dram.model` (`DramModelBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry
from buddysim.replay.dram.model.base import DramModelBase

REGISTRY = component_registry("DRAM model", __name__, "DramModel", DramModelBase)

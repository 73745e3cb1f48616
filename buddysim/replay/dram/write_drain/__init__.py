"""Write drains: one file each, chosen by `dram.write_drain` (`WriteDrainBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry
from buddysim.replay.dram.write_drain.base import WriteDrainBase

REGISTRY = component_registry("write drain", __name__, "WriteDrain", WriteDrainBase)

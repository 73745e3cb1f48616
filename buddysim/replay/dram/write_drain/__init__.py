"""Write drains: one file each, chosen by `dram.write_drain` (`WriteDrainBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry

REGISTRY = component_registry("write drain", __name__, "WriteDrain")

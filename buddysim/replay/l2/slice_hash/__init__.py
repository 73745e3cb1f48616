"""L2 slice hashes: one file each, chosen by `l2.slice_hash` (`SliceHashBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry

REGISTRY = component_registry("slice hash", __name__, "SliceHash")

"""Warp schedulers: one file each, chosen by `sm.policy` (`WarpSchedulerBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry

REGISTRY = component_registry("warp scheduler", __name__, "WarpScheduler")

"""L1 bankings: one file each, chosen by `l1.bank_conflicts` (`L1BankingBase` says what a file has)."""

from buddysim.replay.component.registry import component_registry

REGISTRY = component_registry("L1 banking", __name__, "L1Banking")

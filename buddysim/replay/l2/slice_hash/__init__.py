"""L2 slice hashes: one file each, chosen by `l2.slice_hash` (`SliceHashBase` says what a file has)."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.replay.l2.slice_hash.base import SliceHashBase


def _hash_of(module: ModuleType) -> Mapping[str, type[SliceHashBase]]:
    """The hash that a module defines, by the module's own name: values of machine files have underscores."""
    slice_hash = getattr(module, "SliceHash", None)
    if not (isinstance(slice_hash, type) and issubclass(slice_hash, SliceHashBase)):
        return {}
    return {module.__name__.rpartition(".")[2]: slice_hash}


REGISTRY: Registry[type[SliceHashBase]] = Registry("slice hash", __name__, ("SliceHash",), _hash_of)

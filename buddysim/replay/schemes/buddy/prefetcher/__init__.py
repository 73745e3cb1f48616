"""Prefetchers of metadata lines: one file each, chosen by `metadata_cache.prefetcher` (`MetadataPrefetcherBase`)."""

from buddysim.replay.component.registry import component_registry
from buddysim.replay.schemes.buddy.prefetcher.base import MetadataPrefetcherBase

REGISTRY = component_registry("metadata prefetcher", __name__, "MetadataPrefetcher", MetadataPrefetcherBase)

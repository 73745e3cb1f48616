"""Prefetchers of metadata lines: one file each, chosen by `metadata_cache.prefetcher` (`MetadataPrefetcherBase`)."""

from buddysim.replay.component.registry import component_registry

REGISTRY = component_registry("metadata prefetcher", __name__, "MetadataPrefetcher")

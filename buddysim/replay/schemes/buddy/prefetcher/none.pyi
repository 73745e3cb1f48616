from buddysim.replay.schemes.buddy.prefetcher.base import MetadataPrefetcherBase

ORDER: int

class MetadataPrefetcher(MetadataPrefetcherBase): ...

"""`buddy`: Buddy Compression. One folder: engine (`buddy`, `metadata_cache`) and keys."""

from buddysim.replay.schemes.buddy.buddy import ORDER, Scheme

__all__ = ["ORDER", "Scheme"]

"""The replay engine: memory system and SMs, in Cython. README.md says why so much of it stands in ``.pxd`` files."""

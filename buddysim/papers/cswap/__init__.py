"""CSWAP: Chen et al., "CSWAP: A Self-Tuning Compression Framework for Accelerating Tensor Swapping", CLUSTER 2021."""

TITLE = "CSWAP"
ORDER = 40
DOCUMENT = "training-papers.md"

"""Buddy Compression: Choukse et al., "Buddy Compression: Enabling Larger Memory for Deep Learning and HPC Workloads on
GPUs", arXiv 1903.02596; read off figures: its ISCA 2020 version."""

TITLE = "Buddy"
ORDER = 5
DOCUMENT = "buddy-paper.md"

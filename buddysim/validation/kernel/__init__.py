"""Kernels of real programs: counters of a GPU, the captures' replays beside them, and what is said of both."""

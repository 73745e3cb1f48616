"""Kernels of real programs: counters of a GPU, replays of captures, and the errors between them."""

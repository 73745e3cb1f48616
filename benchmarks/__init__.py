"""Benchmarks of the simulator's speed and memory, one file each: ``python -m benchmarks``."""

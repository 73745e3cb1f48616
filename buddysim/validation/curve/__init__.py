"""Curves of microbenchmarks: measured points, replays of the same benchmarks, fitted parameters, and errors."""

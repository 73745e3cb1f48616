"""Curves of microbenchmarks: measured points, workloads that do the same, what is fitted, how errors are taken."""

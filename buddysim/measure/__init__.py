"""Measures this computer's GPU by the microbenchmarks of docs/validation/method.md; writes a machine file."""

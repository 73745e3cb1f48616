"""Runs the microbenchmarks of docs/validation-rules.md on this computer's GPU: a table of curves and a machine file."""

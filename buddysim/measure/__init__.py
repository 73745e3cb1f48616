"""Runs the microbenchmarks of docs/validation/method.md on this computer's GPU: a table of curves and a machine
file."""

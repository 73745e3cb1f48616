"""The microbenchmarks of docs/validation-rules.md on the GPU at hand: a table of curves, a machine file from it."""

"""Naive twins: what a part of the engine does, written to be read; property tests hold the two against each other."""

"""Schemes that were measured next to the same training without them: time and memory, with their simulations."""

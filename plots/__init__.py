"""Figures, one module each, drawn from saved results."""

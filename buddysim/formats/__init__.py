"""Formats of what a captured training leaves with its trace: operator graphs and feature maps."""

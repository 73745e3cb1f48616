"""File formats of a captured training, next to its trace: operator graphs and feature maps."""

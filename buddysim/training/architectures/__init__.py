"""Models that a ``config.json`` describes: one module for each architecture, written as transformers writes it."""

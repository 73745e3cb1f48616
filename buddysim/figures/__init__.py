"""Figures, one module each: ``vdnn_fig11.py`` is ``python -m buddysim plot vdnn-fig11``."""

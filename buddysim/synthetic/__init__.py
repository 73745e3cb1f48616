"""Synthetic traces: microbenchmarks that show one part of a machine at a time, and large traces for speed and memory.

A workload is a module of this folder with one `Workload`; its name is the module's, with ``-`` for ``_``.
"""

from __future__ import annotations

from buddysim.synthetic.catalogue import load_workload, make_trace, workload_names
from buddysim.synthetic.workload import Workload

__all__ = ["Workload", "load_workload", "make_trace", "workload_names"]

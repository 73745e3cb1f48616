"""Synthetic traces: microbenchmarks that stress one part of a machine each, and large traces for speed and memory.

A workload is a class derived from `Workload`, in a module of this folder or in a plug-in.
"""

from __future__ import annotations

from buddysim.synthetic.workload import Workload
from buddysim.synthetic.workload_classes import make_trace

__all__ = ["Workload", "make_trace"]

"""Synthetic traces: microbenchmarks that stress one part of a machine each, and large traces for speed and memory.

A workload is a class derived from `Workload`, in a module of this folder or in a plug-in.
"""

from __future__ import annotations

from buddysim.synthetic.registry import make_trace
from buddysim.synthetic.workload import Workload

__all__ = ["Workload", "make_trace"]

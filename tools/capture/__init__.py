"""Capture: real programs become trace files. A kind of program is a package of this folder.

It has ``NAME``, ``HELP``, ``add_arguments(parser)`` and ``run(args) -> int``, as a command of `buddysim.cli` does, and
imports whatever isn't always there (torch, OpenCL) in ``run`` only.
"""

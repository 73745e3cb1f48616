"""Importers: convert traces of other tools to trace files, one folder each.

A module or folder with ``SUMMARY``, ``add_arguments`` and ``import_trace`` (`Importer`) is a format of the ``import``
command under its own name. OpenCL bundles (`opencl`) have no command, only a function.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from buddysim.base.registry import Registry, modules_with

CONTRACT = ("SUMMARY", "add_arguments", "import_trace")

#: The formats of the ``import`` command by name.
REGISTRY: Registry[Any] = Registry("importer", __name__, CONTRACT, modules_with(*CONTRACT))


@dataclass(frozen=True)
class ImportResult:
    """The result of an import.

    Attributes
    ----------
    summary : one line about the written file
    warnings : a line each
    """

    summary: str
    warnings: tuple[str, ...] = ()


class Importer(Protocol):
    """Interface of an importer's module."""

    #: One line about the traces that it reads.
    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the importer's arguments; ``-o`` (``args.output``) exists for every importer."""

    def import_trace(self, args: argparse.Namespace, command: str, progress: Callable[[str], object]) -> ImportResult:
        """Write the trace file ``args.output``.

        Parameters
        ----------
        args : the arguments
        command : the command line, for the trace's provenance
        progress : called with the name of the file being read
        """

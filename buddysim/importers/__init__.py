"""Traces of other tools as trace files of this project, a folder each.

A module or folder with ``SUMMARY``, ``add_arguments`` and ``import_trace`` (`Importer`) is a format of the ``import``
command, found by its name; packed OpenCL bundles (`opencl`) are converted by their function alone.
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
    summary : one line: what was written
    warnings : a line each
    """

    summary: str
    warnings: tuple[str, ...] = ()


class Importer(Protocol):
    """Interface of an importer's module."""

    #: One line: which traces it reads.
    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds its arguments; ``-o`` (``args.output``) is there for every importer."""

    def import_trace(self, args: argparse.Namespace, command: str, progress: Callable[[str], object]) -> ImportResult:
        """Writes the trace file ``args.output``.

        Parameters
        ----------
        args : the arguments
        command : the command line, for the trace's provenance
        progress : called with what is being read
        """
